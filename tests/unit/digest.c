/* SPDX-License-Identifier: MIT
 *
 * The ensemble's id of a user, compared with ids by hashlib's SHA-1: for lengths around those at
 * which another block begins.
 */
#include "pure/digest.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

static void expect_id(const char *credentials, const char *wanted)
{
	char *id = digest_id(credentials);

	assert_non_null(id);
	expect(!strcmp(id, wanted), "%s is %s and not %s", credentials, id, wanted);
	free(id);
}

static void lengths(void **state)
{
	static const struct {
		size_t len; /* of the password */
		const char *id;
	} rows[] = {
		{1, "u:Jq7wMyA/w2Vd5WIDAKdu4OIIFEQ="},   {53, "u:9haYA/nqM3XxNMGh/CO/vVlsjwY="},
		{54, "u:eKm7CCgUeLQmQ+V5LVuT4xJjoMU="},  {55, "u:heCxTBtWmQ6MDHJmdu+H/qR7gVA="},
		{61, "u:sQdk8WjMTdt5QpgMeLAFXjpmJ7A="},  {62, "u:7K8oxjW+CY7mhPaEGBOkb+TVrXk="},
		{118, "u:4r2/ZIbLbNo5/t3o8enVcP/bjBI="}, {1000, "u:DEcJyMyskCbqXQx2SZ/F8i+zvps="},
	};
	char credentials[2 + 1000 + 1];

	(void)state;
	for (size_t i = 0; i < LENGTH(rows); i++) {
		memcpy(credentials, "u:", 2);
		memset(credentials + 2, 'p', rows[i].len);
		credentials[2 + rows[i].len] = '\0';
		expect_id(credentials, rows[i].id);
	}
}

static void users(void **state)
{
	(void)state;
	expect_id("super:superpw", "super:g9oN2HttPfn8MMWJZ2r45Np/LIA=");
	expect_id("user:pass:word", "user:yNMcEO4y6Bgll487yEAxpvnMYoo=");
	expect_id("\303\251:\303\274", "\303\251:Ztqg8TrMmzkSFpOaDBO87lu10+c=");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
