/* SPDX-License-Identifier: MIT
 *
 * A command line that somebody typed, or put together from the words of others, and a file of
 * credentials: it is refused in one line, or the options are within their limits, and libfuse is
 * told nothing but what was asked for. The input is the arguments, each ended by a 0, an empty
 * one, and the file.
 */
#include "fuzz.h"

#include "setup/credentials.h"
#include "setup/options.h"
#include "setup/resolve.h"
#include "setup/source.h"
#include "told.h"
#include "tree/facts.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ARGS_MAX 12
#define DAY_US (86400 * 1000000LL)

/* ---- the file: no path of the input is opened ---- */

static int file = -1;

char *__real_credentials_read(const char *path, const char **ret_why);
char *__wrap_credentials_read(const char *path, const char **ret_why);

char *__wrap_credentials_read(const char *path, const char **ret_why)
{
	char own[64], *line;

	MUST(path);
	snprintf(own, sizeof(own), "/proc/self/fd/%d", file);
	line = __real_credentials_read(own, ret_why);
	MUST(line || **ret_why);
	return line;
}

static void fill_file(const char *data, size_t len)
{
	if (file < 0)
		file = memfd_create("credentials", MFD_CLOEXEC);
	MUST(file >= 0 && fchmod(file, 0600) == 0 && ftruncate(file, 0) == 0);
	MUST(pwrite(file, data, len, 0) == (ssize_t)len);
}

/* ---- what is true of options that were taken ---- */

static void check_duration(int64_t us, int64_t least_us)
{
	MUST(us >= least_us && us <= DAY_US && us % 1000 == 0);
}

static void check_source(const struct options *options)
{
	size_t len = strlen(options->servers);

	MUST(len > 0 && strncmp(options->source, options->servers, len) == 0);
	for (const char *c = options->servers; *c; c++)
		MUST((unsigned char)*c > 0x20 && *c != 0x7f && *c != '/' && *c != '@');
	MUST(servers_wrong(options->servers, options->source, "/") == NULL);
	(void)resolve_are_numbers(options->servers);
	len = strlen(options->root);
	MUST(options->root[0] == '/' && len > 1 && options->root[len - 1] != '/');
	MUST(!strstr(options->root, "//") && !strstr(options->root, "/../"));
	MUST(root_wrong(options->root) == NULL);
}

static void check_credentials(const char *line)
{
	const char *colon;

	if (!line)
		return;
	colon = strchr(line, ':');
	MUST(colon && colon > line && colon[1] && strlen(line) <= CREDENTIALS_MAX);
	for (; *line; line++)
		MUST((unsigned char)*line >= 0x20 && *line != 0x7f);
}

static void check_told(const struct options *options)
{
	struct told told;

	MUST(told_read(options, &told) == 0);
	MUST(told.unknown == 0 && strcmp(told.subtype, "zklockfs") == 0);
	MUST(strcmp(told.fsname, options->source) == 0);
	MUST(told.default_permissions && told.nosuid && told.nodev && told.noexec);
	MUST(told.allow_other == options->all_users && told.ro == options->read_only);
	told_free(&told);
}

static void check_options(const struct options *options)
{
	check_duration(options->session_timeout_us, 1000);
	check_duration(options->tick_time_us, 1000);
	check_duration(options->connect_timeout_us, 1000);
	check_duration(options->retry_us, 0);
	check_duration(options->drain_us, 0);
	check_source(options);
	check_credentials(options->credentials);
	check_told(options);
	MUST(*options->host && options->umask <= 0777);
	MUST(options->uid != (uid_t)-1 && options->gid != (gid_t)-1);
	MUST(options->check || options->mountpoint);
}

/* ---- the run ---- */

/* One line for people, whatever was typed. */
static void check_refusal(const char *said, size_t len, int status)
{
	if (status == 0)
		return;
	MUST(status == EXIT_USAGE || status == EXIT_MOUNT);
	MUST(len > 0 && said[len - 1] == '\n');
	/* The other is a `-o` at the end. */
	MUST(strncmp(said, "zklockfs: ", 10) == 0 || strncmp(said, "fuse: missing", 13) == 0);
	for (size_t i = 0; i < len - 1; i++)
		MUST((unsigned char)said[i] >= 0x20 && said[i] != 0x7f);
}

static void parse(int argc, char **argv)
{
	FILE *out = stdout, *err = stderr;
	char *said = NULL, *printed = NULL;
	struct options options;
	size_t len, printed_len;
	int status = -1;
	bool ok;

	stderr = open_memstream(&said, &len);
	stdout = open_memstream(&printed, &printed_len);
	MUST(stderr && stdout);
	ok = options_parse(argc, argv, "/mounted", &options, &status);
	fclose(stderr);
	fclose(stdout);
	stderr = err;
	stdout = out;
	if (ok) {
		MUST(len == 0 && printed_len == 0);
		check_options(&options);
		options_free(&options);
	} else {
		check_refusal(said, len, status);
		MUST((printed_len > 0) == (status == 0));
	}
	free(said);
	free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *argv[ARGS_MAX + 1] = {(char *)"zklockfs"}, *text = malloc(size + 1);
	size_t at = 0;
	int argc = 1;

	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (; argc < ARGS_MAX && at < size && text[at]; at += strlen(text + at) + 1)
		argv[argc++] = text + at;
	at = at < size ? at + 1 : size;
	fill_file(text + at, size - at);
	parse(argc, argv);
	free(text);
	return 0;
}
