/* SPDX-License-Identifier: MIT
 *
 * digest.c - see digest.h. SHA-1 as in FIPS 180-4; it is the ensemble's choice, not ours.
 */
#include "digest.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 64
#define LENGTH_BYTES 8 /* of the length in bits, at the end of the last block */
#define HASH_WORDS 5
#define HASH_BYTES 20
#define ROUNDS 80
#define BASE64_BYTES 28 /* of a hash, its `=` included */

static uint32_t rotated(uint32_t word, unsigned by)
{
	return word << by | word >> (32 - by);
}

static uint32_t mixed(const uint32_t v[HASH_WORDS], unsigned round)
{
	switch (round / 20) {
	case 0:
		return ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999;
	case 1:
		return (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1;
	case 2:
		return ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdc;
	default:
		return (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6;
	}
}

static void add_block(uint32_t hash[HASH_WORDS], const uint8_t block[BLOCK_BYTES])
{
	uint32_t words[ROUNDS], v[HASH_WORDS];

	for (size_t i = 0; i < BLOCK_BYTES / 4; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		           (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (size_t i = BLOCK_BYTES / 4; i < ROUNDS; i++)
		words[i] = rotated(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
	memcpy(v, hash, sizeof(v));
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t first = rotated(v[0], 5) + mixed(v, i) + v[4] + words[i];

		memmove(v + 1, v, sizeof(v) - sizeof(v[0]));
		v[0] = first;
		v[2] = rotated(v[2], 30);
	}
	for (size_t i = 0; i < HASH_WORDS; i++)
		hash[i] += v[i];
	explicit_bzero(words, sizeof(words));
}

static void sha1(const char *text, size_t len, uint8_t ret_hash[HASH_BYTES])
{
	uint32_t hash[HASH_WORDS] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
	uint8_t block[BLOCK_BYTES];
	uint64_t bits = (uint64_t)len * 8;

	for (; len >= BLOCK_BYTES; len -= BLOCK_BYTES, text += BLOCK_BYTES) {
		memcpy(block, text, BLOCK_BYTES);
		add_block(hash, block);
	}
	memset(block, 0, BLOCK_BYTES);
	memcpy(block, text, len);
	block[len] = 0x80;
	if (len >= BLOCK_BYTES - LENGTH_BYTES) {
		add_block(hash, block);
		memset(block, 0, BLOCK_BYTES);
	}
	for (size_t i = 0; i < LENGTH_BYTES; i++)
		block[BLOCK_BYTES - 1 - i] = (uint8_t)(bits >> 8 * i);
	add_block(hash, block);
	explicit_bzero(block, sizeof(block));
	for (size_t i = 0; i < HASH_BYTES; i++)
		ret_hash[i] = (uint8_t)(hash[i / 4] >> (24 - 8 * (i % 4)));
}

static void base64(const uint8_t hash[HASH_BYTES], char ret_text[BASE64_BYTES + 1])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < BASE64_BYTES; i++) {
		size_t at = 6 * i / 8, shift = 6 * i % 8;
		unsigned pair = at < HASH_BYTES ? (unsigned)hash[at] << 8 : 0;

		pair |= at + 1 < HASH_BYTES ? hash[at + 1] : 0;
		ret_text[i] = digits[pair >> (10 - shift) & 0x3f];
	}
	ret_text[BASE64_BYTES - 1] = '='; /* 20 bytes are 27 digits */
	ret_text[BASE64_BYTES] = '\0';
}

char *digest_id(const char *credentials)
{
	size_t user = strcspn(credentials, ":");
	char *id = malloc(user + 1 + BASE64_BYTES + 1);
	uint8_t hash[HASH_BYTES];

	if (!id)
		return NULL;
	sha1(credentials, strlen(credentials), hash);
	memcpy(id, credentials, user);
	id[user] = ':';
	base64(hash, id + user + 1);
	return id;
}
