/* SPDX-License-Identifier: MIT
 *
 * zklock.c - take locks of a zklockfs and run a command while they are held; or look at
 * them. It uses the files of the mount alone. zklock(1) says what the options do.
 *
 *   zklock.c  the command line      take.c  several locks, one time limit
 *   mount.c   where the mount is    start.c  the process that takes them and becomes the command
 *   run.c     what stops it         child.c  a child that may hang in the mount
 *   tell.c, wait.c, loss.c  what is said while locks are held or waited for
 *   look.c, why.c, status.c, chain.c  the commands that take nothing
 *   entry.c, table.c, health.c  what files say   tree.c, span.c, clean.c  processes, times, texts
 *   words.c  what was meant by a mistyped word
 */
#include "clean.h"
#include "look.h"
#include "run.h"
#include "span.h"
#include "start.h"
#include "words.h"

#include <err.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define LOCKS_MAX 256
#define GRACE_MS 1000
#define MODE_MAX 0777u

enum {
	OPTION_AHEAD = 256,
	OPTION_AT_MOST,
	OPTION_AT_LEAST,
	OPTION_MAKE,
	OPTION_MODE,
	OPTION_SLOTS
};

static const char help[] =
	"usage: zklock [OPTION...] LOCK... -- COMMAND [ARGUMENT...]\n"
	"       zklock [-m DIR] ls [LOCK]\n"
	"       zklock [-m DIR] why [-s] LOCK\n"
	"       zklock [-m DIR] history [LOCK]\n"
	"       zklock [-m DIR] status\n"
	"       zklock [-m DIR] evict LOCK ENTRY...\n"
	"\n"
	"Acquires all LOCKs in the order of their names, runs COMMAND, releases them.\n"
	"\n"
	"  -m, --mount DIR     where the locks are ($ZKLOCKFS, or the only zklockfs)\n"
	"  -w, --wait TIME     wait at most this long for all locks together\n"
	"  -n, --nonblock      do not wait\n"
	"      --ahead N       do not wait behind N others\n"
	"  -s, --shared        take the locks beside others that share them\n"
	"  -R, --reentrant     join the hold of a parent process\n"
	"  -r, --reason TEXT   reason shown to others, also while waiting (COMMAND)\n"
	"  -o, --close         do not pass the locks' descriptors to COMMAND\n"
	"  -k, --grace TIME    time from SIGTERM to SIGKILL when a lock is lost (1s)\n"
	"      --at-most TIME  stop COMMAND when it has held the locks this long\n"
	"      --at-least TIME keep the locks this long, even if COMMAND ends earlier\n"
	"      --make          create a lock that does not exist, and its parents\n"
	"      --mode MODE     mode of a lock that --make creates (0777 less umask)\n"
	"      --slots N       a lock that --make creates has N holders: a semaphore\n"
	"  -E, --status N      exit status when somebody else has a lock (75)\n"
	"  -q, --quiet         print no message in that case\n"
	"  -v, --verbose       print each lock that is taken\n"
	"  -h, --help          print this\n"
	"  -V, --version       print the version\n"
	"\n"
	"TIME is a whole number and ms, s, m, h or d; without a unit, seconds.\n";

static const char short_options[] = "+:m:w:nsRr:ok:E:qvhV";
static const struct option long_options[] = {
	{"mount", required_argument, NULL, 'm'},
	{"wait", required_argument, NULL, 'w'},
	{"nonblock", no_argument, NULL, 'n'},
	{"shared", no_argument, NULL, 's'},
	{"reentrant", no_argument, NULL, 'R'},
	{"reason", required_argument, NULL, 'r'},
	{"close", no_argument, NULL, 'o'},
	{"grace", required_argument, NULL, 'k'},
	{"ahead", required_argument, NULL, OPTION_AHEAD},
	{"at-most", required_argument, NULL, OPTION_AT_MOST},
	{"at-least", required_argument, NULL, OPTION_AT_LEAST},
	{"make", no_argument, NULL, OPTION_MAKE},
	{"mode", required_argument, NULL, OPTION_MODE},
	{"slots", required_argument, NULL, OPTION_SLOTS},
	{"status", required_argument, NULL, 'E'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

struct options {
	const char *mount;
	struct take take;
	struct run run;
	const struct kind *kind; /* of the command that takes nothing, once that is known */
	char for_taking[16];     /* one that means nothing to ls, why and so on; or "" */
};

static const struct kind {
	const char *name, *usage;
	size_t least, most; /* words behind the name */
} kinds[] = {
	{"ls", "zklock [-m DIR] ls [LOCK]", 0, 1},
	{"why", "zklock [-m DIR] why [-s] LOCK", 1, 1},
	{"history", "zklock [-m DIR] history [LOCK]", 0, 1},
	{"status", "zklock [-m DIR] status", 0, 0},
	{"evict", "zklock evict LOCK ENTRY...; an ENTRY is `holder`, a number, or a name in queue/",
         2, SIZE_MAX},
	{.name = NULL},
};

/* Closed files stay closed for the command, but no lock becomes its standard output. */
static void fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < 3);
	if (fd >= 0)
		close(fd);
}

static int64_t parse_time(const char *text)
{
	char shown[CLEAN_MAX];
	int64_t ms;

	if (!span_parse(text, &ms))
		errx(EX_USAGE,
		     "'%s' is no time: a time is a whole number with ms, s, m, h or d, such as "
		     "90s, at most a year",
		     clean(shown, sizeof(shown), text));
	return ms;
}

static unsigned parse_number(const char *option, const char *text, unsigned most)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number = digits < 8 && !text[digits] ? strtoul(text, NULL, 10) : 0;

	if (number == 0 || number > most)
		errx(EX_USAGE, "%s takes a number from 1 to %u", option, most);
	return (unsigned)number;
}

static int parse_mode(const char *text)
{
	size_t digits = strspn(text, "01234567");
	unsigned long mode =
		digits > 0 && digits < 8 && !text[digits] ? strtoul(text, NULL, 8) : MODE_MAX + 1;

	if (mode > MODE_MAX)
		errx(EX_USAGE, "--mode takes an octal number from 0 to %o", MODE_MAX);
	return (int)mode;
}

static int parse_status(const char *text)
{
	char *end, shown[CLEAN_MAX];
	long number = strtol(text, &end, 10);

	if (!*text || *end || number < 0 || number > 255)
		errx(EX_USAGE, "'%s' is no status: a status is a number from 0 to 255",
		     clean(shown, sizeof(shown), text));
	return (int)number;
}

/* `status`, if all that was printed could be written. */
static int end_printing(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	warn("standard output");
	return EX_IOERR;
}

static void print_and_end(const char *text)
{
	fputs(text, stdout);
	exit(end_printing(EX_OK));
}

static bool parse_flag(struct options *options, int option)
{
	switch (option) {
	case 'n':
		options->take.limit_ms = 0;
		return true;
	case 's':
		options->take.shared = true;
		return true;
	case 'R':
		options->take.reentrant = true;
		return true;
	case 'o':
		options->run.close = true;
		return true;
	case 'q':
		options->take.quiet = true;
		return true;
	case 'v':
		options->take.verbose = true;
		return true;
	case OPTION_MAKE:
		options->take.make.wanted = true;
		return true;
	default:
		return false;
	}
}

static void parse_value(struct options *options, int option)
{
	switch (option) {
	case 'm':
		options->mount = optarg;
		break;
	case 'w':
		options->take.limit_ms = parse_time(optarg);
		break;
	case 'r':
		options->take.reason = optarg;
		break;
	case 'k':
		options->run.grace_ms = parse_time(optarg);
		break;
	case OPTION_AHEAD:
		options->take.ahead = parse_number("--ahead", optarg, TAKE_AHEAD_MAX);
		break;
	case OPTION_AT_MOST:
		options->run.at_most_ms = parse_time(optarg);
		break;
	case OPTION_AT_LEAST:
		options->take.least_ms = parse_time(optarg);
		break;
	case OPTION_MODE:
		options->take.make.mode = parse_mode(optarg);
		break;
	case OPTION_SLOTS:
		options->take.make.slots = parse_number("--slots", optarg, MAKE_SLOTS_MAX);
		break;
	case 'E':
		options->take.failure = parse_status(optarg);
		break;
	}
}

/* An option that means nothing to the command is told before its value is looked at. */
static void check_kind(const struct options *options)
{
	const struct kind *kind = options->kind;

	if (!kind)
		return;
	if (*options->for_taking)
		errx(EX_USAGE, "%s means nothing to %s: %s", options->for_taking, kind->name,
		     kind->usage);
	if (options->take.shared && strcmp(kind->name, "why") != 0)
		errx(EX_USAGE, "-s means nothing to %s: %s", kind->name, kind->usage);
}

static void note_for_taking(struct options *options, int option)
{
	if (option >= OPTION_AHEAD)
		snprintf(options->for_taking, sizeof(options->for_taking), "--%s",
		         words_long_name(long_options, option));
	else if (option != 'm' && option != 's')
		snprintf(options->for_taking, sizeof(options->for_taking), "-%c", option);
	check_kind(options);
}

/* `word`: the last that was read to its end. */
static void parse_option(struct options *options, int option, const char *word)
{
	if (option == 'h')
		print_and_end(help);
	if (option == 'V')
		print_and_end("zklock " ZKLOCKFS_VERSION "\n");
	if (option == ':')
		note_for_taking(options, optopt);
	if (option == ':' || option == '?')
		words_misused(long_options, option, word,
		              options->kind ? options->kind->usage : "try zklock --help");
	note_for_taking(options, option);
	if (!parse_flag(options, option))
		parse_value(options, option);
}

static void parse_options(struct options *options, int argc, char **argv)
{
	int option;

	opterr = 0; /* getopt(3) would name the command as the program */
	while ((option = getopt_long(argc, argv, short_options, long_options, NULL)) != -1)
		parse_option(options, option, argv[optind - 1]);
	check_kind(options);
}

static void check_options(const struct options *options)
{
	if (options->take.shared && options->take.reentrant)
		errx(EX_USAGE, "-s and -R exclude each other: a shared hold cannot be joined");
	if (options->take.ahead && options->take.limit_ms == 0)
		errx(EX_USAGE, "--ahead and -n exclude each other: -n waits behind nobody");
	if (options->take.reason && strlen(options->take.reason) > REASON_MAX)
		errx(EX_USAGE, "the reason is longer than %d bytes", REASON_MAX);
	if (!options->take.make.wanted &&
	    (options->take.make.mode >= 0 || options->take.make.slots))
		errx(EX_USAGE, "--mode and --slots need --make");
	if (options->run.at_most_ms >= 0 && options->take.least_ms > options->run.at_most_ms)
		errx(EX_USAGE, "--at-least is longer than --at-most");
}

/* ---- the command line ---- */

/* Words before `--` are locks, words behind it the command. */
static int run_command(struct options *options, char **words, size_t count, char **command)
{
	struct take *take = &options->take;
	static struct mount mount; /* with what it has, until the end */
	const char *base;

	if (count == 0)
		errx(EX_USAGE, "no LOCK before `--`: zklock LOCK... -- COMMAND");
	if (!*command)
		errx(EX_USAGE, "no COMMAND behind `--`: zklock LOCK... -- COMMAND");
	for (size_t i = 0; i < count; i++)
		if (*words[i] == '-')
			errx(EX_USAGE, "options stand before the locks; a lock -x is named ./-x");
	if (count > LOCKS_MAX)
		errx(EX_USAGE, "more than %d locks", LOCKS_MAX);
	check_options(options);
	mount_find(&mount, options->mount, words[0]);
	take->mount = &mount;
	take->locks = calloc(count, sizeof(*take->locks));
	if (!take->locks)
		err(EX_OSERR, NULL);
	for (size_t i = 0; i < count; i++)
		take->locks[i] = (struct lock){
			.name = mount_lock_name(&mount, words[i]), .place = (int)i + 1, .fd = -1};
	take->count = count;
	if (count > 1 && take->shared && take->least_ms)
		errx(EX_USAGE, "-s and --at-least take one lock");
	base = strrchr(command[0], '/');
	take->command = base ? base + 1 : command[0];
	if (!take->reason && !take->reentrant) /* its arguments may be secret */
		take->reason = take->command;
	options->run.take = take;
	options->run.command = command;
	return run(&options->run);
}

/* ---- looking ---- */

static const struct kind *find_kind(const char *name)
{
	const struct kind *kind = kinds;

	while (kind->name && strcmp(kind->name, name) != 0)
		kind++;
	return kind->name ? kind : NULL;
}

/* No word releases a lock: what such a word proposes would take a lock of that name. */
static void look_for_release(char **words)
{
	static const char *const names[] = {"release", "unlock", "give-back"};
	char line[CLEAN_WORDS_MAX] = "", shown[CLEAN_WORDS_MAX];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(*words, names[i]) == 0) {
			clean_add_word(line, words[1] ? words[1] : "LOCK");
			errx(EX_USAGE,
			     "a lock is released when its command ends; this takes it away: "
			     "zklock evict%s holder",
			     clean(shown, sizeof(shown), line));
		}
}

/* Mostly a command line as of flock(1), perhaps with its -c. */
static _Noreturn void look_for_nothing(char **words)
{
	char line[CLEAN_WORDS_MAX] = "", shown[CLEAN_WORDS_MAX], lock[CLEAN_WORDS_MAX];
	const char *meant;

	if (!*words)
		errx(EX_USAGE,
		     "no LOCK and no COMMAND: zklock LOCK... -- COMMAND; try zklock --help");
	if (strcmp(*words, "help") == 0)
		print_and_end(help);
	look_for_release(words);
	clean_add_word(line, *words);
	clean_add_word(line, "--");
	if (!words[1])
		clean_add_word(line, "COMMAND");
	else if (strcmp(words[1], "-c") == 0)
		clean_add_word(line, "sh");
	for (char **word = words + 1; *word; word++)
		clean_add_word(line, *word);
	meant = words_nearest(*words, kinds, sizeof(*kinds));
	errx(EX_USAGE,
	     "`%s` is none of ls, why, history, status, evict%s%s%s; to run a command with that "
	     "lock: zklock%s",
	     clean(lock, sizeof(lock), *words), meant ? " (did you mean " : "", meant ? meant : "",
	     meant ? "?)" : "", clean(shown, sizeof(shown), line));
}

static int look_at(const struct mount *mount, const char *what, bool shared, char **words)
{
	static char *lock; /* until the end */

	lock = *words ? mount_lock_name(mount, *words) : NULL;

	if (strcmp(what, "ls") == 0)
		return lock ? look_queue(mount, lock) : look_all(mount);
	if (strcmp(what, "why") == 0)
		return look_why(mount, lock, shared);
	if (strcmp(what, "history") == 0)
		return look_history(mount, lock);
	if (strcmp(what, "status") == 0)
		return look_status(mount);
	return look_evict(mount, lock, words + 1);
}

static int look(struct options *options, int argc, char **argv)
{
	const struct kind *kind = argc > 0 ? find_kind(argv[0]) : NULL;
	static struct mount mount;
	size_t count;

	if (!kind)
		look_for_nothing(argv);
	optind = 0; /* from the start, and with what getopt keeps */
	options->kind = kind;
	parse_options(options, argc, argv);
	argv += optind;
	count = (size_t)(argc - optind);
	if (count < kind->least || count > kind->most)
		errx(EX_USAGE, "too %s words: %s", count < kind->least ? "few" : "many",
		     kind->usage);
	mount_find_answering(&mount, options->mount, *argv);
	return look_at(&mount, kind->name, options->take.shared, argv);
}

int main(int argc, char **argv)
{
	static struct options options = {
		.take = {.limit_ms = -1, .failure = EX_TEMPFAIL, .make = {.mode = -1}},
		.run = {.grace_ms = GRACE_MS, .at_most_ms = -1},
	};
	size_t count = 0;

	start_as_first();
	fill_standard_files();
	setlocale(LC_CTYPE, "");
	parse_options(&options, argc, argv);
	argv += optind;
	argc -= optind;
	while (argv[count] && strcmp(argv[count], "--") != 0)
		count++;
	if (argv[count])
		return run_command(&options, argv, count, argv + count + 1);
	if (strcmp(argv[-1], "--") == 0) /* which getopt has passed over */
		errx(EX_USAGE, "no LOCK before `--`: zklock LOCK... -- COMMAND");
	return end_printing(look(&options, argc, argv));
}
