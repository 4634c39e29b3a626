/* SPDX-License-Identifier: MIT */
#include "pure/name.h"

#include "pure/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DIGITS 10

/* The value of ten digits; -1: they are not all digits. */
static int64_t read_digits(const char *text)
{
	int64_t number = 0;

	for (int i = 0; i < DIGITS; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -1;
		number = number * 10 + (text[i] - '0');
	}
	return number;
}

bool name_is_numbered(const char *name)
{
	size_t len = strlen(name);

	return len >= DIGITS && read_digits(name + len - DIGITS) >= 0;
}

/* The number, and where the text before it ends. A wrapped counter prints as a minus
 * sign and ten digits from -2147483648 to -1000000000, to be told from the '-' that
 * ends most prefixes. */
static int64_t signed_number(const char *name, size_t before, int64_t number, size_t *ret_before)
{
	bool minus = before > 0 && name[before - 1] == '-';
	bool doubled = before > 1 && minus && name[before - 2] == '-';

	if ((doubled && number >= 1000000000) || (minus && number > INT32_MAX)) {
		*ret_before = before - 1;
		return -number;
	}
	*ret_before = before;
	return number;
}

/* The value of so many hex digits, with a `-` behind them. Each mount that waits lists the lock, so
 * there may be very many names: no branch depends on a digit. */
static uint64_t read_hex(const char **text, int digits, bool *good)
{
	/* One more than the value; 0: no digit. */
	static const unsigned char values[256] = {
		['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
		['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
		['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
	};
	uint64_t number = 0;

	for (int i = 0; i < digits; i++) {
		unsigned value = values[(unsigned char)*(*text)++];

		*good &= value > 0;
		number = number << 4 | ((value - 1) & 0xf);
	}
	*good &= *(*text)++ == '-';
	return number;
}

/* A UUID with a `-` behind it. */
static bool parse_uuid(const char *text, uint64_t *ret_high, uint64_t *ret_low)
{
	bool good = true;

	*ret_high = read_hex(&text, 8, &good) << 32;
	*ret_high |= read_hex(&text, 4, &good) << 16;
	*ret_high |= read_hex(&text, 4, &good);
	*ret_low = read_hex(&text, 4, &good) << 48;
	*ret_low |= read_hex(&text, 12, &good);
	return good;
}

static bool host_character(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

/* `_c_<uuid>-<host>.<pid>` between that head and that tail, without the digits. */
static bool parse_ours(const char *name, size_t len, const struct clients_name *ours,
                       struct entry_name *out)
{
	size_t head = strlen(ours->head), tail = strlen(ours->tail);
	size_t host = head + 3 + 36 + 1, end, dot;
	long pid = 0;

	if (len < host + tail || memcmp(name + len - tail, ours->tail, tail) != 0 ||
	    memcmp(name, ours->head, head) != 0 || memcmp(name + head, "_c_", 3) != 0 ||
	    !parse_uuid(name + head + 3, &out->session_half, &out->taker_half))
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

/* A mount's, of any family. The tails differ, or no pid ends where one would begin. */
static bool parse_of_mount(const char *name, size_t len, struct entry_name *out)
{
	for (size_t i = 0; i < CLIENTS_COUNT; i++)
		for (int mode = LC_EXCLUSIVE; mode <= LC_SHARED; mode++)
			if (parse_ours(name, len, &clients_all[i].ours[mode], out)) {
				out->mode = (enum lc_mode)mode;
				out->home = clients_all[i].ours[mode].home;
				return true;
			}
	return false;
}

bool name_parse(const char *name, struct entry_name *ret_name)
{
	struct entry_name out = {.of_mount = true, .client = "zklockfs"};
	size_t len = strlen(name);
	int64_t number = len < DIGITS ? -1 : read_digits(name + len - DIGITS);

	if (number < 0)
		return false;
	number = signed_number(name, len - DIGITS, number, &len);
	if (!parse_of_mount(name, len, &out)) {
		const struct clients_form *form = clients_form(name, len);

		out = (struct entry_name){.mode = form->mode,
		                          .client = form->client,
		                          .home = form->home,
		                          .host = "-"};
	}
	out.number = number;
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

void name_format(char ret_prefix[NAME_PREFIX_MAX], const struct clients *clients,
                 uint64_t session_half, uint64_t taker_half, const char *host, pid_t pid,
                 enum lc_mode mode)
{
	const struct clients_name *ours = &clients->ours[mode];
	size_t host_len = strnlen(host, LC_HOST_MAX);
	char *end = stpcpy(stpcpy(ret_prefix, ours->head), "_c_");

	end = put_hex(end, session_half >> 32, 8);
	end = put_hex(end, session_half >> 16, 4);
	end = put_hex(end, session_half, 4);
	end = put_hex(end, taker_half >> 48, 4);
	end = put_hex(end, taker_half, 12);
	memcpy(end, host, host_len);
	end += host_len;
	snprintf(end, NAME_PREFIX_MAX - (size_t)(end - ret_prefix), ".%d%s", (int)pid, ours->tail);
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

/* PathUtils.validatePath() of ZooKeeper takes no control characters, and from the surrogates on
 * nothing but U+F900 to U+FFEF, which keeps out everything beyond the BMP. */
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
