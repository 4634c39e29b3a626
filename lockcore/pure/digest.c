/* SPDX-License-Identifier: MIT
 *
 * digest.c - see digest.h. The ensemble wants SHA-1.
 */
#include "pure/digest.h"

#include <sha1.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BASE64_BYTES 28 /* of a hash, its `=` included */

static void base64(const uint8_t hash[SHA1_DIGEST_LENGTH], char ret_text[BASE64_BYTES + 1])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < BASE64_BYTES; i++) {
		size_t at = 6 * i / 8, shift = 6 * i % 8;
		unsigned pair = at < SHA1_DIGEST_LENGTH ? (unsigned)hash[at] << 8 : 0;

		pair |= at + 1 < SHA1_DIGEST_LENGTH ? hash[at + 1] : 0;
		ret_text[i] = digits[pair >> (10 - shift) & 0x3f];
	}
	ret_text[BASE64_BYTES - 1] = '='; /* 20 bytes are 27 digits */
	ret_text[BASE64_BYTES] = '\0';
}

char *digest_id(const char *credentials)
{
	size_t user = strcspn(credentials, ":");
	char *id = malloc(user + 1 + BASE64_BYTES + 1);
	uint8_t hash[SHA1_DIGEST_LENGTH];
	SHA1_CTX sha1;

	if (!id)
		return NULL;
	SHA1Init(&sha1);
	SHA1Update(&sha1, (const uint8_t *)credentials, strlen(credentials));
	SHA1Final(hash, &sha1);
	explicit_bzero(&sha1, sizeof(sha1));
	memcpy(id, credentials, user);
	id[user] = ':';
	base64(hash, id + user + 1);
	return id;
}
