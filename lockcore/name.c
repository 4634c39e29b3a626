/* SPDX-License-Identifier: MIT
 *
 * name.c - see name.h.
 */
#include "name.h"

#include "utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 10

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(text + len - n, end, n) == 0;
}

bool name_is_numbered(const char *name)
{
	size_t len = strlen(name);

	if (len < DIGITS)
		return false;
	for (size_t i = len - DIGITS; i < len; i++)
		if (!isdigit((unsigned char)name[i]))
			return false;
	return true;
}

/* The number, and where the text before it ends. A wrapped counter prints as a minus
 * sign and ten digits from -2147483648 to -1000000000, to be told from the '-' that
 * ends most prefixes. */
static int64_t parse_number(const char *name, size_t *ret_before)
{
	size_t before = strlen(name) - DIGITS;
	int64_t number = strtoll(name + before, NULL, 10);
	bool minus = before > 0 && name[before - 1] == '-';
	bool doubled = before > 1 && minus && name[before - 2] == '-';

	if ((doubled && number >= 1000000000) || (minus && number > INT32_MAX)) {
		*ret_before = before - 1;
		return -number;
	}
	*ret_before = before;
	return number;
}

/* Reads the hex digits of a UUID at the usual places. */
static bool parse_uuid(const char *text, uint64_t *ret_high, uint64_t *ret_low)
{
	uint64_t half[2] = {0, 0};
	int digits = 0;

	for (int i = 0; i < 36; i++) {
		int c = (unsigned char)text[i], value;

		if (i == 8 || i == 13 || i == 18 || i == 23) {
			if (c != '-')
				return false;
			continue;
		}
		if (c >= '0' && c <= '9')
			value = c - '0';
		else if (c >= 'a' && c <= 'f')
			value = c - 'a' + 10;
		else
			return false;
		half[digits / 16] = half[digits / 16] << 4 | (uint64_t)value;
		digits++;
	}
	*ret_high = half[0];
	*ret_low = half[1];
	return true;
}

static bool host_character(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* `_c_<uuid>-<host>.<pid>-lock-`, without the digits. */
static bool parse_ours(const char *name, size_t len, struct entry_name *out)
{
	size_t tail = out->mode == LC_SHARED ? strlen("-rlock-") : strlen("-lock-");
	size_t host = 3 + 36 + 1, end, dot;
	long pid = 0;

	if (len < host + tail || memcmp(name, "_c_", 3) != 0 || name[host - 1] != '-' ||
	    !parse_uuid(name + 3, &out->session_half, &out->taker_half))
		return false;
	end = len - tail;
	for (dot = end; dot > host && name[dot - 1] != '.'; dot--)
		if (!isdigit((unsigned char)name[dot - 1]))
			return false;
	if (dot <= host + 1 || dot == end || dot - 1 - host > LC_HOST_MAX || end - dot > 10)
		return false;
	/* Nothing that could pass for another field where it is shown. */
	for (size_t i = host; i < dot - 1; i++)
		if (!host_character(name[i]))
			return false;
	for (size_t i = dot; i < end; i++)
		pid = pid * 10 + (name[i] - '0');
	if (pid > INT32_MAX)
		return false;
	memcpy(out->host, name + host, dot - 1 - host);
	out->host[dot - 1 - host] = '\0';
	out->pid = (pid_t)pid;
	return true;
}

bool name_parse(const char *name, struct entry_name *ret_name)
{
	static const char *const shared[] = {"-rlock-", "__rlock__", "__READ__"};
	static const char *const incompatible[] = {"__lock__", "__rlock__", "__READ__", "__WRIT__"};
	struct entry_name out = {.mode = LC_EXCLUSIVE, .host = "-"};
	size_t len;

	if (!name_is_numbered(name))
		return false;
	out.number = parse_number(name, &len);
	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		if (ends_with(name, len, shared[i]))
			out.mode = LC_SHARED;
	for (size_t i = 0; i < sizeof(incompatible) / sizeof(incompatible[0]); i++)
		out.incompatible |= ends_with(name, len, incompatible[i]);
	if ((out.mode == LC_SHARED && ends_with(name, len, "-rlock-")) ||
	    ends_with(name, len, "-lock-"))
		out.ours = parse_ours(name, len, &out);
	if (!out.ours) {
		out.session_half = out.taker_half = 0;
		out.pid = 0;
		strcpy(out.host, "-");
	}
	*ret_name = out;
	return true;
}

/* The last so many digits, and what separates them from the next ones. */
static char *put_hex(char *end, uint64_t number, int digits)
{
	for (int i = digits; i-- > 0; number >>= 4)
		end[i] = "0123456789abcdef"[number & 0xf];
	end[digits] = '-';
	return end + digits + 1;
}

void name_format(char ret_prefix[NAME_PREFIX_MAX], uint64_t session_half, uint64_t taker_half,
                 const char *host, pid_t pid, enum lc_mode mode)
{
	size_t host_len = strnlen(host, LC_HOST_MAX);
	char *end = stpcpy(ret_prefix, "_c_");

	end = put_hex(end, session_half >> 32, 8);
	end = put_hex(end, session_half >> 16, 4);
	end = put_hex(end, session_half, 4);
	end = put_hex(end, taker_half >> 48, 4);
	end = put_hex(end, taker_half, 12);
	memcpy(end, host, host_len);
	end += host_len;
	snprintf(end, NAME_PREFIX_MAX - (size_t)(end - ret_prefix), ".%d-%s-", (int)pid,
	         mode == LC_SHARED ? "rlock" : "lock");
}

void name_host(char ret_host[LC_HOST_MAX + 1], const char *host)
{
	size_t n;

	for (n = 0; n < LC_HOST_MAX && host[n] != '\0' && host[n] != '.'; n++) {
		ret_host[n] = host[n];
		if (!host_character(host[n]))
			ret_host[n] = '_';
	}
	if (n == 0)
		ret_host[n++] = '_';
	ret_host[n] = '\0';
}

/* As PathUtils.validatePath() of ZooKeeper: no control characters, and nothing from the surrogates
 * on but U+F900 to U+FFEF, which keeps out everything beyond the BMP. */
static bool zookeeper_takes(uint32_t c)
{
	return c >= 0x20 && (c < 0x7f || c >= 0xa0) && (c < 0xd800 || c >= 0xf900) && c < 0xfff0;
}

bool name_has_good_characters(const char *name)
{
	for (size_t len = strlen(name); len > 0;) {
		uint32_t c;
		size_t size = utf8_read(name, len, &c);

		if (size == 0 || c == '/' || !zookeeper_takes(c))
			return false;
		name += size;
		len -= size;
	}
	return true;
}

int name_check(const char *name, const char **ret_why)
{
	const char *why = NULL;

	if (name[0] == '\0' || name[0] == '.')
		why = "a lock's name does not start with a dot";
	else if (strlen(name) > LC_NAME_MAX) {
		*ret_why = "a lock's name has at most 255 bytes";
		return -ENAMETOOLONG;
	} else if (name_is_numbered(name))
		why = "a name that ends in ten digits would be taken for a queue entry";
	else if (!name_has_good_characters(name))
		why = "ZooKeeper takes no control characters, emoji or invalid UTF-8 in names";
	if (!why)
		return 0;
	*ret_why = why;
	return -EINVAL;
}
