/* SPDX-License-Identifier: MIT
 *
 * counts.h - what the frontend counts from the start of the mount on; the engine has its own
 * (lockcore.h).
 */
#ifndef FS_COUNTS_H
#define FS_COUNTS_H

#include "pure/codec.h"

/* The field; its metric, and the label that tells it from others of that metric; what it counts.
 * The record, where it stands by its name, and the metrics are made from this list. Fields of one
 * metric stand together. */
#define COUNTS(COUNT)                                                             \
	COUNT(reloads, "reloads_total", "",                                       \
	      "Reloads: another program took over this mount without a restart.") \
	COUNT(adoptions, "adoptions_total", "",                                   \
	      "Crashes of the daemon after which this mount went on.")            \
	COUNT(log_lines_not_written, "log_lines_not_written_total", "",           \
	      "Lines that the log had no room for.")                              \
	COUNT(logs_ended, "helper_restarts_total", "helper=\"log\"",              \
	      "Processes of this mount that were killed, and started again.")

struct counts {
#define COUNT(field, metric, label, help) unsigned long field;
	COUNTS(COUNT)
#undef COUNT
};

/* The counts of this process, and of the processes whose mount it has taken over. */
extern struct counts counted;

void counts_save_load(struct codec *codec);

#endif
