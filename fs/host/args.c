/* SPDX-License-Identifier: MIT */
#include "host/args.h"

#include <stdlib.h>
#include <string.h>

int args_count(char *const argv[])
{
	int count = 0;

	while (argv[count])
		count++;
	return count;
}

char *args_join(char *const argv[], size_t *ret_len)
{
	size_t len = 0;
	char *bytes, *end;

	for (size_t i = 1; argv[i]; i++)
		len += strlen(argv[i]) + 1;
	bytes = end = malloc(len + 1);
	for (size_t i = 1; bytes && argv[i]; i++)
		end = stpcpy(end, argv[i]) + 1;
	*ret_len = len;
	return bytes;
}

char **args_split(const char *program, const char *bytes, size_t len)
{
	size_t count = 0, name = strlen(program) + 1;
	char **argv, *copy;

	if (len == 0 || len > ARGS_BYTES_MAX || bytes[len - 1])
		return NULL;
	for (size_t i = 0; i < len; i++)
		count += !bytes[i];
	argv = malloc((count + 2) * sizeof(*argv) + name + len);
	if (!argv)
		return NULL;
	copy = (char *)(argv + count + 2);
	argv[0] = memcpy(copy, program, name);
	copy = memcpy(copy + name, bytes, len);
	for (size_t i = 1; i <= count; i++) {
		argv[i] = copy;
		copy += strlen(copy) + 1;
	}
	argv[count + 1] = NULL;
	return argv;
}
