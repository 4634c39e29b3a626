/* SPDX-License-Identifier: MIT
 *
 * zklocktop.c - a live view of the locks of a zklockfs; zklocktop(1) says what the keys do.
 *
 *   zklocktop.c  keys, and when to read      report.c  reads, in a child (job.c), and parses
 *   screen.c     draws, and sorts            scroll.c  which line is chosen
 */
#include "job.h"
#include "span.h"
#include "top.h"
#include "words.h"

#include <curses.h>
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <term.h>
#include <unistd.h>

#define KEY_ESCAPE 27
#define ESCAPE_MS 25 /* a key that begins with Esc comes faster, also over ssh */
#define DELAY_MIN_MS 100

static const char help[] =
	"usage: zklocktop [-m DIR] [-d TIME]\n"
	"\n"
	"Shows the locks that are held or waited for, on any host.\n"
	"\n"
	"  -m, --mount DIR     where the locks are ($ZKLOCKFS, or the only zklockfs)\n"
	"  -d, --delay TIME    time between two updates (1s)\n"
	"  -h, --help          print this\n"
	"  -V, --version       print the version\n"
	"\n"
	"Keys: Enter queue of a lock, Esc back, s sort order, e evict, r read now, h help,\n"
	"q quit.\n";

struct session {
	struct top top;
	struct job look, eviction;
	bool look_at_queue; /* what the look under way is for */
	bool evict_soon;    /* e was pressed in the list: ask when the queue is there */
	int64_t delay_ms;
	int64_t next_ms;
	bool quit;
};

static const char *name_of_lock(const void *list, size_t i)
{
	return ((const struct report *)list)->table.rows[i].lock;
}

static const char *name_of_place(const void *list, size_t i)
{
	return ((const struct report *)list)->places[i].name;
}

/* ---- reading the mount ---- */

static void start_look(struct session *self)
{
	struct question question = {.mount = &self->top.mount};
	bool queue = top_shows_queue(&self->top);

	snprintf(question.lock, sizeof(question.lock), "%s", self->top.lock);
	question.first = self->top.places.first;
	question.count = screen_lines() * 2;
	self->look_at_queue = queue;
	self->next_ms = span_now_ms() + self->delay_ms;
	if (!job_start(&self->look, queue ? report_queue : report_locks, &question))
		snprintf(self->top.message, sizeof(self->top.message), "%s", strerror(errno));
}

/* Another list is shown now: read it at once. */
static void look_anew(struct session *self)
{
	job_end(&self->look);
	self->next_ms = 0;
}

static void ask_to_evict(struct session *self)
{
	struct top *top = &self->top;
	const struct place_in_queue *place;

	if (top->places.count == 0)
		return;
	place = &top->queue.places[top->places.chosen];
	top->eviction.mount = &top->mount;
	snprintf(top->eviction.lock, sizeof(top->eviction.lock), "%s", top->lock);
	snprintf(top->eviction.entry, sizeof(top->eviction.entry), "%.299s", top->places.name);
	snprintf(top->eviction.who, sizeof(top->eviction.who), "%.20s (%.60s) on %.60s", place->pid,
	         place->command, place->host);
	top->eviction.held = place->held;
	top->asking = true;
}

/* The queue has come of which the one holder was to be evicted. */
static void ask_for_holder(struct session *self)
{
	struct top *top = &self->top;
	size_t holders = 0;

	self->evict_soon = false;
	for (size_t i = 0; i < top->queue.count; i++)
		holders += top->queue.places[i].held;
	if (holders == 1)
		ask_to_evict(self);
	else
		snprintf(top->message, sizeof(top->message), "%s",
		         holders ? "several hold it: choose one, and press e" : "nobody holds it");
}

static void take_locks(struct session *self, char *text)
{
	struct report report;

	if (!report_parse_locks(text, &report))
		err(EX_OSERR, NULL);
	report_free(&self->top.locks);
	self->top.locks = report;
	top_sort(&self->top);
	scroll_update(&self->top.list, &self->top.locks, self->top.locks.count);
}

static void take_queue(struct session *self, char *text)
{
	struct report report;

	if (!report_parse_queue(text, &report))
		err(EX_OSERR, NULL);
	report_free(&self->top.queue);
	self->top.queue = report;
	scroll_update(&self->top.places, &self->top.queue, self->top.queue.count);
	if (self->evict_soon)
		ask_for_holder(self);
}

static void take_results(struct session *self)
{
	char *text = job_read(&self->look);

	if (text && self->look_at_queue)
		take_queue(self, text);
	else if (text)
		take_locks(self, text);
	text = job_read(&self->eviction);
	if (text) {
		snprintf(self->top.message, sizeof(self->top.message), "%s", text);
		free(text);
		look_anew(self);
	}
}

/* ---- keys ---- */

static void show_queue(struct session *self)
{
	struct top *top = &self->top;

	if (top->list.count == 0)
		return;
	snprintf(top->lock, sizeof(top->lock), "%s", top->list.name);
	report_free(&top->queue);
	top->places = (struct scroll){.name_of = name_of_place};
	scroll_update(&top->places, &top->queue, 0);
	look_anew(self);
}

static void show_all(struct session *self)
{
	*self->top.lock = '\0';
	self->evict_soon = false;
	look_anew(self);
}

static void answer(struct session *self, int key)
{
	struct top *top = &self->top;

	top->asking = false;
	if (key != 'y' && key != 'Y') {
		snprintf(top->message, sizeof(top->message), "nobody was evicted");
		return;
	}
	if (self->eviction.pid || !job_start(&self->eviction, report_eviction, &top->eviction))
		snprintf(top->message, sizeof(top->message), "another eviction is under way");
}

static void press_in_list(struct session *self, int key)
{
	if (key == 's') {
		self->top.order = (self->top.order + 1) % (ORDER_NAME + 1);
		top_sort(&self->top);
		scroll_update(&self->top.list, &self->top.locks, self->top.locks.count);
	} else if (key == '\n' || key == '\r' || key == KEY_ENTER || key == KEY_RIGHT) {
		show_queue(self);
	} else if (key == 'e') {
		self->evict_soon = self->top.list.count > 0;
		show_queue(self);
	}
}

static void press_in_queue(struct session *self, int key)
{
	if (key == KEY_ESCAPE || key == KEY_LEFT || key == KEY_BACKSPACE || key == 127)
		show_all(self);
	else if (key == 'e')
		ask_to_evict(self);
}

static long lines_of_key(int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		return -1;
	case KEY_DOWN:
	case 'j':
		return 1;
	case KEY_PPAGE:
		return -(long)screen_lines();
	case KEY_NPAGE:
		return (long)screen_lines();
	case KEY_HOME:
		return -1000000;
	case KEY_END:
		return 1000000;
	default:
		return 0;
	}
}

static void press(struct session *self, int key)
{
	bool queue = top_shows_queue(&self->top);

	if (key == KEY_RESIZE)
		return;
	if (self->top.asking) {
		answer(self, key);
		return;
	}
	*self->top.message = '\0';
	if (self->top.helping)
		self->top.helping = false;
	else if (key == 'h' || key == '?')
		self->top.helping = true;
	else if (key == 'q')
		self->quit = true;
	else if (key == 'r')
		look_anew(self);
	else if (lines_of_key(key))
		scroll_move(queue ? &self->top.places : &self->top.list, lines_of_key(key));
	else if (queue)
		press_in_queue(self, key);
	else
		press_in_list(self, key);
}

/* ---- the loop ---- */

/* Sleeps until a key, an answer, or the time to look; false: the terminal is gone. */
static bool wait_for_more(struct session *self)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = self->look.fd, .events = POLLIN},
		{.fd = self->eviction.fd, .events = POLLIN},
	};
	int64_t now = span_now_ms(), wait = self->look.pid ? 1000 : self->next_ms - now;

	if (poll(fds, 3, wait < 0 ? 0 : (int)wait) < 0)
		return errno == EINTR; /* the window has another size */
	return !(fds[0].revents & (POLLHUP | POLLERR | POLLNVAL));
}

static void run_session(struct session *self)
{
	int key;

	do {
		take_results(self);
		while (!self->quit && (key = getch()) != ERR)
			press(self, key);
		if (!self->look.pid && span_now_ms() >= self->next_ms && !self->quit)
			start_look(self);
		self->top.unanswered_ms = self->look.pid ? span_now_ms() - self->look.since_ms : 0;
		screen_draw(&self->top);
	} while (!self->quit && wait_for_more(self));
}

static void start_screen(void)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		errx(EX_USAGE, "not a terminal; use zklock ls instead");
	set_escdelay(ESCAPE_MS);
	if (!newterm(NULL, stdout, stdin))
		errx(EX_UNAVAILABLE, "the terminal %s is not known", getenv("TERM"));
	if (!tigetstr("cup") || tigetstr("cup") == (char *)-1) {
		endwin();
		errx(EX_UNAVAILABLE, "the terminal %s cannot move its cursor", getenv("TERM"));
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	curs_set(0);
}

static void parse_arguments(struct session *self, int argc, char **argv, const char **ret_mount)
{
	static const struct option options[] = {
		{"mount", required_argument, NULL, 'm'},
		{"delay", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":m:d:hV", options, NULL)) != -1) {
		if (option == 'm')
			*ret_mount = optarg;
		else if (option == 'd' && !span_parse(optarg, &self->delay_ms))
			errx(EX_USAGE,
			     "'%s' is no time: a time is a whole number with ms, s, m, h or d",
			     optarg);
		else if (option == 'h' || option == 'V')
			exit(fputs(option == 'h' ? help : "zklocktop " ZKLOCKFS_VERSION "\n",
			           stdout) < 0 ||
			                     fflush(stdout)
			             ? EX_IOERR
			             : EX_OK);
		else if (option == '?' || option == ':')
			words_misused(options, option, argv[optind - 1], "try zklocktop --help");
	}
	if (argv[optind])
		errx(EX_USAGE, "too many words: it shows all locks; Enter shows the queue of one");
	if (self->delay_ms < DELAY_MIN_MS)
		self->delay_ms = DELAY_MIN_MS;
}

int main(int argc, char **argv)
{
	static struct session self = {
		.delay_ms = 1000,
		.top = {.list = {.name_of = name_of_lock}, .places = {.name_of = name_of_place}},
	};
	const char *mount = NULL;

	setlocale(LC_CTYPE, "");
	parse_arguments(&self, argc, argv, &mount);
	mount_find_answering(&self.top.mount, mount, NULL);
	job_init(&self.look);
	job_init(&self.eviction);
	start_screen();
	run_session(&self);
	endwin();
	job_end(&self.look);
	job_end(&self.eviction);
	return EX_OK;
}
