/* SPDX-License-Identifier: MIT
 *
 * The file of credentials: its permissions, its content, and that children do not get it.
 */
#include "setup/credentials.h"

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/zklockfs-credentials-XXXXXX";
static char path[64];

static int begin(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/file", directory);
	return 0;
}

static int end(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static void put(const char *text, size_t len, mode_t mode)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void good(const char *text, mode_t mode, const char *wanted)
{
	const char *why = "nothing";
	char *got;

	put(text, strlen(text), mode);
	got = credentials_read(path, &why);
	if (!got)
		fail_msg("%s", why);
	assert_string_equal(got, wanted);
	credentials_wipe(got);
}

static void bad(const char *text, size_t len, mode_t mode, const char *word)
{
	const char *why = NULL;

	put(text, len, mode);
	assert_null(credentials_read(path, &why));
	assert_non_null(why);
	if (!strstr(why, word))
		fail_msg("'%s' and not '%s'", why, word);
}

static void one_line_is_taken(void **state)
{
	char line[CREDENTIALS_MAX + 1];

	(void)state;
	good("user:password\n", 0600, "user:password");
	good("user:password", 0400, "user:password");
	good("u:p:q r\n", 0700, "u:p:q r");
	memset(line, 'x', sizeof(line));
	line[3] = ':';
	line[CREDENTIALS_MAX] = '\0';
	good(line, 0600, line);
}

static void all_else_is_refused(void **state)
{
	char line[CREDENTIALS_MAX + 1], much[10000];

	(void)state;
	bad("", 0, 0600, "empty");
	bad("\n", 1, 0600, "empty");
	bad("user\n", 5, 0600, "user:password");
	bad(":password\n", 10, 0600, "user:password");
	bad("user:\n", 6, 0600, "user:password");
	bad("user:password\nmore\n", 19, 0600, "more than one line");
	bad("user:password\n\n", 15, 0600, "more than one line");
	bad("\nuser:password\n", 15, 0600, "more than one line");
	bad("user:password\r\n", 15, 0600, "CR LF");
	bad("user:pass\rword\n", 15, 0600, "control");
	bad("user:password \n", 15, 0600, "blank");
	bad("user:password ", 14, 0600, "blank");
	bad(" user:password\n", 15, 0600, "blank");
	bad("\xef\xbb\xbfuser:password\n", 17, 0600, "byte order mark");
	bad("user:pass\0word\n", 15, 0600, "control");
	bad("user:password\0", 14, 0600, "control");
	memset(line, 'x', sizeof(line));
	line[3] = ':';
	bad(line, sizeof(line), 0600, "too long");
	memset(much, 'x', sizeof(much));
	bad(much, sizeof(much), 0600, "too long");
}

static void others_must_be_kept_out(void **state)
{
	static const mode_t modes[] = {0640, 0620, 0604, 0602, 0644, 0666};

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		bad("user:password\n", 14, modes[i], "chmod");
}

static void only_a_file_will_do(void **state)
{
	const char *why = NULL;

	(void)state;
	unlink(path);
	assert_null(credentials_read(path, &why));
	assert_string_equal(why, "No such file or directory");
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(credentials_read(path, &why));
	assert_string_equal(why, "it is not a regular file");
	unlink(path);
	assert_null(credentials_read(directory, &why));
	assert_string_equal(why, "it is not a regular file");
}

static void children_do_not_get_it(void **state)
{
	const char *why;
	char *credentials;
	int status;
	pid_t pid;

	(void)state;
	put("user:password\n", 14, 0600);
	credentials = credentials_read(path, &why);
	assert_non_null(credentials);
	credentials_confine(credentials);
	pid = fork();
	if (pid == 0)
		_exit(credentials[0] == '\0' ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(credentials, "user:password");
	credentials_wipe(credentials);
	credentials_wipe(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_is_taken),       cmocka_unit_test(all_else_is_refused),
		cmocka_unit_test(others_must_be_kept_out), cmocka_unit_test(only_a_file_will_do),
		cmocka_unit_test(children_do_not_get_it),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
