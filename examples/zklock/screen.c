/* SPDX-License-Identifier: MIT
 *
 * screen.c - draws what top.h holds. Without colours; the selected line is reversed. All texts come
 * from others and pass through put_text(), which lets nothing of them act.
 */
#include "top.h"

#include "clean.h"
#include "span.h"

#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HEAD_LINES 2 /* the mount, and the names of columns */
#define COLUMNS_MAX 9
#define WIDE 110 /* columns from which the process has one */

struct column {
	const char *head;
	int width; /* 0: what is left */
	bool right;
};

enum list_column {
	LOCK,
	HELD,
	HOLDERS,
	WAIT,
	WAITERS,
	HOST,
	PROCESS,
	COMMAND,
	REASON,
	LIST_COLUMNS
};
enum queue_column { NUMBER, STATE, MODE, SINCE, AT, PID, NAME, WHY, QUEUE_COLUMNS };

static const struct column list_columns[LIST_COLUMNS] = {
	[LOCK] = {"LOCK", 20, false},    [HELD] = {"HELD", 6, true},
	[HOLDERS] = {"N", 5, true},      [WAIT] = {"WAITED", 6, true},
	[WAITERS] = {"Q", 3, true},      [HOST] = {"HOST", 10, false},
	[PROCESS] = {"PID", 7, true},    [COMMAND] = {"COMMAND", 10, false},
	[REASON] = {"REASON", 0, false},
};

static const struct column queue_columns[QUEUE_COLUMNS] = {
	[NUMBER] = {"NUMBER", 10, false}, [STATE] = {"STATE", 7, false},
	[MODE] = {"MODE", 9, false},      [SINCE] = {"FOR", 6, true},
	[AT] = {"HOST", 10, false},       [PID] = {"PID", 7, true},
	[NAME] = {"COMMAND", 10, false},  [WHY] = {"REASON", 0, false},
};

/* ---- text ---- */

static int width_of_text(const char *text)
{
	int width = 0;
	wchar_t c;

	for (size_t n; (n = clean_next(text, &c)) > 0; text += n)
		width += wcwidth(c);
	return width;
}

/* In so many columns of the screen, padded with blanks; a cut text ends in `~`. */
static void put_text(int y, int x, int width, const char *text, bool right)
{
	int whole = width_of_text(text), used = 0;
	wchar_t c[2] = {0};

	if (width <= 0 || y < 0 || y >= LINES || x >= COLS)
		return;
	mvhline(y, x, ' ', width);
	move(y, right && whole < width ? x + width - whole : x);
	for (size_t n; (n = clean_next(text, c)) > 0; text += n) {
		int more = wcwidth(*c);

		if (whole > width && used + more > width - 1) {
			addch('~');
			break;
		}
		addwstr(c);
		used += more;
	}
}

/* All columns of a line. The last has what the others leave. */
static void put_line(int y, const struct column *columns, const int *widths, size_t count,
                     const char *const *words)
{
	int x = 0;

	for (size_t i = 0; i < count && x < COLS; i++) {
		int width = widths[i];

		if (width == 0)
			continue;
		if (width > COLS - x)
			width = COLS - x;
		put_text(y, x, width, words ? words[i] : columns[i].head, columns[i].right);
		x += width + 1;
	}
}

static void find_widths(const struct column *columns, size_t count, int *widths)
{
	int left = COLS;

	for (size_t i = 0; i < count; i++) {
		widths[i] = columns[i].width;
		left -= widths[i] + 1;
	}
	widths[count - 1] = left + 1 > 0 ? left + 1 : 0;
}

/* ---- lists ---- */

size_t screen_lines(void)
{
	return LINES > HEAD_LINES + 1 ? (size_t)LINES - HEAD_LINES - 1 : 1;
}

static void draw_list_line(const struct top *top, int y, size_t i, const int *widths)
{
	const struct row *row = &top->locks.table.rows[i];
	char held[SPAN_MAX], waited[SPAN_MAX], holders[ROW_HOLDERS_MAX];
	const char *const words[LIST_COLUMNS] = {
		[LOCK] = row->lock,
		[HELD] = span_format(held, row->held_ms),
		[HOLDERS] = row_holders(row, holders),
		[WAIT] = span_format(waited, row->waited_ms),
		[WAITERS] = row->waiters,
		[HOST] = row->host,
		[PROCESS] = row->pid,
		[COMMAND] = row->command,
		[REASON] = row->reason,
	};

	put_line(y, list_columns, widths, LIST_COLUMNS, words);
}

static void draw_queue_line(const struct top *top, int y, size_t i, const int *widths)
{
	const struct place_in_queue *place = &top->queue.places[i];
	char since[SPAN_MAX], number[12];
	const char *const words[QUEUE_COLUMNS] = {
		[NUMBER] = number,
		[STATE] = place->held ? "held" : "waiting",
		[MODE] = place->shared ? "shared" : "exclusive",
		[SINCE] = span_format(since, place->since_ms),
		[AT] = place->host,
		[PID] = place->pid,
		[NAME] = place->command,
		[WHY] = place->reason,
	};

	snprintf(number, sizeof(number), "%.*s", (int)strcspn(place->name, "-"), place->name);
	put_line(y, queue_columns, widths, QUEUE_COLUMNS, words);
}

/* Its place is the reason's. */
static void leave_out(int widths[LIST_COLUMNS], enum list_column column)
{
	widths[REASON] += widths[column] + 1;
	widths[column] = 0;
}

static bool several_hold(const struct report *locks)
{
	for (size_t i = 0; i < locks->table.count; i++)
		if (row_has_slots(&locks->table.rows[i]) ||
		    strtoul(locks->table.rows[i].holders, NULL, 10) > 1)
			return true;
	return false;
}

static void draw_lines(struct top *top)
{
	bool queue = top_shows_queue(top);
	const struct column *columns = queue ? queue_columns : list_columns;
	size_t count = queue ? (size_t)QUEUE_COLUMNS : (size_t)LIST_COLUMNS;
	struct scroll *scroll = queue ? &top->places : &top->list;
	const char *trouble = (queue ? &top->queue : &top->locks)->trouble; /* then it is empty */
	int widths[COLUMNS_MAX];

	find_widths(columns, count, widths);
	if (!queue && !several_hold(&top->locks))
		leave_out(widths, HOLDERS);
	if (!queue && COLS < WIDE) {
		leave_out(widths, PROCESS);
	} else if (!queue) {
		int more = widths[REASON] / 3;

		widths[LOCK] += more;
		widths[REASON] -= more;
	}
	attron(A_BOLD);
	put_line(1, columns, widths, count, NULL);
	if (trouble)
		put_text(HEAD_LINES, 0, COLS, trouble, false);
	attroff(A_BOLD);
	scroll_show(scroll, screen_lines());
	for (size_t i = 0; i < screen_lines() && scroll->first + i < scroll->count; i++) {
		int y = HEAD_LINES + (int)i;

		if (queue)
			draw_queue_line(top, y, scroll->first + i, widths);
		else
			draw_list_line(top, y, scroll->first + i, widths);
		if (scroll->first + i == scroll->chosen)
			mvchgat(y, 0, -1, A_REVERSE, 0, NULL);
	}
}

/* ---- around them ---- */

static void draw_head(const struct top *top)
{
	const struct report *report = top_shows_queue(top) ? &top->queue : &top->locks;
	static const char *const orders[] = {"longest wait", "longest hold", "name"};
	char text[LOCK_NAME_MAX + 400], now[16], age[SPAN_MAX];
	time_t seconds = time(NULL);
	size_t waited = 0;

	strftime(now, sizeof(now), "%H:%M:%S", localtime(&seconds));
	for (size_t i = 0; i < top->locks.table.count; i++)
		waited += top->locks.table.rows[i].waited_ms >= 0;
	if (top->unanswered_ms >= 2000)
		snprintf(text, sizeof(text), "no answer for %s",
		         span_format(age, top->unanswered_ms));
	else if (!report->headline)
		snprintf(text, sizeof(text), "reading");
	else if (report->trouble && top_shows_queue(top))
		snprintf(text, sizeof(text), "%.*s: not known", LOCK_NAME_MAX, top->lock);
	else if (report->trouble)
		snprintf(text, sizeof(text), "%.80s. %.200s", report->headline, top->mount.path);
	else if (top_shows_queue(top))
		snprintf(text, sizeof(text), "%.*s: %s", LOCK_NAME_MAX, top->lock,
		         report->headline);
	else
		snprintf(text, sizeof(text), "%zu lock%s, %zu waited for, by %s. %.80s. %.200s",
		         report->count, report->count == 1 ? "" : "s", waited, orders[top->order],
		         report->headline, top->mount.path);
	put_text(0, 0, COLS - 10, text, false);
	put_text(0, COLS - 9, 9, now, true);
}

/* What it does, and above it what follows. The answers stay in sight however long the names are. */
static void draw_question(const struct eviction *eviction)
{
	char text[LOCK_NAME_MAX + 400];

	snprintf(text, sizeof(text), "Evict process %s from %s?", eviction->who, eviction->lock);
	put_text(LINES - 2, 0, COLS - 1,
	         eviction->held ? "It loses the lock. Its program goes on, unless zklock or its "
	                          "mount's on_lost stops it."
	                        : "It waits no longer: its open fails.",
	         false);
	put_text(LINES - 1, 0, COLS - 6, text, false);
	put_text(LINES - 1, COLS - 5, 4, "y/n", false);
}

static void draw_foot(const struct top *top)
{
	const char *keys =
		top_shows_queue(top)
			? "Esc all locks  Up Down choose  e evict  r read now  h help  q quit"
			: "Enter queue  Up Down choose  s sort  e evict  r read now  h help  q "
			  "quit";

	attron(A_BOLD);
	if (top->asking) {
		draw_question(&top->eviction);
	} else if (*top->message) {
		put_text(LINES - 1, 0, COLS - 1, top->message, false);
	} else {
		attroff(A_BOLD);
		put_text(LINES - 1, 0, COLS - 1, top->helping ? "any key goes back" : keys, false);
	}
	attroff(A_BOLD);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"Up Down k j PgUp PgDn Home End   choose a line",
		"Enter Right                      the queue of the lock",
		"Esc Left Backspace               back to all locks",
		"s       sort by the longest wait, the longest hold, the name",
		"e       evict: the chosen entry, or the holder of the chosen lock",
		"r       read now",
		"h ?     this help",
		"q       quit",
		"",
		"HELD    how long the first holder has held the lock",
		"WAITED  how long the first waiter has waited",
		"Q       how many wait",
		"N       how many hold it; with slots, of how many",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		put_text(HEAD_LINES + (int)i, 2, COLS - 2, lines[i], false);
}

void screen_draw(struct top *top)
{
	erase();
	if (top->helping)
		draw_help();
	else
		draw_lines(top);
	draw_head(top);
	draw_foot(top);
	move(LINES - 1, COLS - 1);
	refresh();
}

/* ---- the order ---- */

static int compare_long(int64_t left, int64_t right)
{
	return left < right ? 1 : left > right ? -1 : 0;
}

static int compare_waits(const void *a, const void *b)
{
	const struct row *left = a, *right = b;
	int order = compare_long(left->waited_ms, right->waited_ms);

	if (order == 0)
		order = compare_long(left->held_ms, right->held_ms);
	return order ? order : strcmp(left->lock, right->lock);
}

static int compare_holds(const void *a, const void *b)
{
	const struct row *left = a, *right = b;
	int order = compare_long(left->held_ms, right->held_ms);

	return order ? order : strcmp(left->lock, right->lock);
}

static int compare_locks(const void *a, const void *b)
{
	return strcmp(((const struct row *)a)->lock, ((const struct row *)b)->lock);
}

void top_sort(struct top *top)
{
	static int (*const compare[])(const void *, const void *) = {
		[ORDER_WAIT] = compare_waits,
		[ORDER_HOLD] = compare_holds,
		[ORDER_NAME] = compare_locks,
	};

	if (top->locks.table.count)
		qsort(top->locks.table.rows, top->locks.table.count, sizeof(*top->locks.table.rows),
		      compare[top->order]);
}
