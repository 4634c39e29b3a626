/* SPDX-License-Identifier: MIT
 *
 * lease.h - how long this mount may rely on its session without asking.
 *
 * All arithmetic of time and safety stands here, pure: no clock is read, all
 * times are handed in, microseconds of one clock that goes on while the
 * machine is suspended, and is not slewed by more than what is allowed below.
 *
 *   T     the smallest session timeout granted in this session, and never more than was asked
 *   tick  the servers' tickTime, the longest that is known
 *   w     tick/2 + 0.25 s   how long a follower may keep a touch of the session to
 *                           itself: it reports to the leader every half tick
 *   g     0.3 s             guard, for what has to happen after the deadline is seen
 *   F     the larger of 5 s and 5/2 tick, at most T: the shortest session that any server may
 *         grant at any time
 *   0.998                   drift allowed between our clock and the servers'
 *
 * Evidence is a *step*: a write answered OK that was sent at least w after the
 * previous step's answer arrived. An answered read or ping proves nothing, a
 * follower that is cut off from its leader answers both; an acknowledged write
 * proves that the leader was the leader. That the leader also heard of our
 * being alive needs one relay more, so the deadline counts from two steps back:
 *
 *   step:      1        2        3           deadline = sent(1) + 0.998 T - g
 *         sent---answer  sent--answer  sent--answer
 *                  >= w       >= w
 *
 * Counting by sending times alone is fooled by requests piled up behind a
 * stalled link, which are then all answered at once; hence the spacing from
 * answer to sending.
 *
 * A new connection is evidence too, since the leader touches the session when it
 * creates or validates it: the second write answered OK on a connection gives
 * (clock before connect) + 0.998 T - g. The mailbox, and the entries that its letters name, are
 * read between the two writes: while the connection was lost takers may have been evicted, though
 * the session lives. In a session that has never had a lease nothing is held, and the first write
 * will do.
 *
 * A *renewal* is the request by which a new connection takes the session to a server. The server
 * gives the session a timeout of its own choice, F or more, and only its answer tells which. So a
 * renewal counts from before it leaves until it is answered: the lease ends 0.998 F - g after
 * that moment at the latest. A renewal that was given up may be carried out at any time while
 * the session lives, by a server that stood still, though another server has answered since. A
 * write answered OK shows that this had not happened when the write was sent: a renewal that is
 * carried out moves the session to its server, and the servers refuse the former one's writes.
 * So from then on the lease ends 0.998 F - g after the sending of the newest answered write.
 *
 * A machine that was paused (a virtual one: its clocks stand still, all of them) does not
 * know what its readings from before are worth. When there is reason to think so the lease
 * is in *doubt*: nothing sent before that moment is evidence any more. The deadline still
 * counts, and is 2 s off at most. Evidence from a connection begun after it ends the doubt,
 * and the lease is what that says; or else the lease is over.
 */
#ifndef LOCKCORE_LEASE_H
#define LOCKCORE_LEASE_H

#include "pure/codec.h"

#include <stdbool.h>
#include <stdint.h>

/* The longest session, and the longest tick. */
#define TIMEOUT_MAX_US (INT32_MAX * INT64_C(1000))
#define LEASE_GUARD_US 300000
/* What the answer of a small write is given. */
#define LEASE_ANSWER_US 50000
/* How long a doubt lasts. */
#define LEASE_DOUBT_US 2000000
/* F, but for long ticks: see above. */
#define LEASE_FLOOR_US 5000000

struct lease {
	int64_t tick_us, lead_us;
	int64_t timeout_us;  /* T; 0 before the first connection of a session */
	int64_t deadline_us; /* INT64_MIN: none */
	int64_t connect_us;  /* of the connection that is still to be proved, or -1 */
	int64_t sent_us[3];  /* the last three steps, newest first */
	int64_t answered_us; /* the newest step's answer */
	int steps;           /* how many of sent_us[] count, 0 to 3 */
	int64_t void_us;     /* what was sent until then is no evidence; INT64_MIN: all is */
	int64_t doubt_us;    /* in doubt until then, then over; INT64_MAX: no doubt */
	/* A write was answered: the next one is sent behind the reads for letters, if there can be
	 * any. */
	bool reads_sent;
	int64_t renews_us; /* a renewal left after this, and is not answered; INT64_MAX: none */
	/* A renewal was given up, and was not carried out before this; INT64_MAX: none was. */
	int64_t late_us;
};

/* The first session: nothing is proved. `lead_us`: how long before the lease's end begins the
 * stopping of those who lose their lock, else 0. */
void lease_begin(struct lease *lease, int64_t tick_us, int64_t lead_us);
/* The next one. */
void lease_again(struct lease *lease);
/* The lease has ended while the mount had no entry: nothing is lost, and it is as in a session that
 * has never had a lease. */
void lease_rest(struct lease *lease);
/* What another process needs to go on with it: all but the connection, which is not proved. To read
 * it, after lease_begin(). No part of it is later than now. */
void lease_save_load(struct codec *codec, struct lease *lease, int64_t now_us);
/* A renewal leaves after this; one that left before is given up. */
void lease_renews(struct lease *lease, int64_t now_us);
/* The leases of this session are shorter once a renewal was given up. */
bool lease_needs_scout(const struct lease *lease);
/* A renewal was given up in this session. */
bool lease_expects_late_renewal(const struct lease *lease);
/* A connection was accepted, with the session timeout granted on it, or that was asked for if it
 * is shorter. */
void lease_connected(struct lease *lease, int64_t timeout_us, int64_t connect_us);
/* No server grants more than that any longer: what was promised on more is taken back. */
void lease_shorten(struct lease *lease, int64_t timeout_us);
/* A write was answered OK. True if the deadline moved. */
bool lease_answered(struct lease *lease, int64_t sent_us, int64_t now_us);
/* The servers' ticks are longer than was known. The steps so far, too near to each other, are no
 * evidence any more. True: the lease rested on them, and is in doubt now. */
bool lease_raise_tick(struct lease *lease, int64_t tick_us, int64_t now_us);
/* The clock may have stood still before this moment. */
void lease_doubt(struct lease *lease, int64_t now_us);
/* In doubt, and not over: it is good for nothing now, and may be good again. */
bool lease_doubted(const struct lease *lease, int64_t now_us);
/* The deadline, or what renewals leave of it. */
int64_t lease_certain_end(const struct lease *lease);
/* The same, or before it the end of the doubt. */
int64_t lease_end(const struct lease *lease);
/* What is left, in doubt or not, never below 0. */
int64_t lease_left(const struct lease *lease, int64_t now_us);
/* Enough left to grant a lock: besides the lead T/8 (F/8 if a renewal was given up), and until
 * the next step can have been answered. Otherwise a heartbeat comes first, or the lock would be
 * lost, or its holder be stopped, as soon as it is granted. */
bool lease_fresh(const struct lease *lease, int64_t now_us);

/* w: a write sent earlier than this after a step's answer is no step. */
int64_t lease_spacing(const struct lease *lease);
/* Heartbeats keep this distance: w while somebody holds or waits, so that the longest
 * silence is survived; when idle, a sixth of T keeps a free lock one round trip away. */
int64_t lease_heartbeat(const struct lease *lease, bool busy);
/* How long a server may owe an answer before the next one is tried: a fifth of T, or of F if a
 * renewal was given up. */
int64_t lease_answer_timeout(const struct lease *lease);

/* Whether these leave a lease worth having: at the steady pace of one step every w, at
 * least T/8 must be left at the worst moment, and the lead. */
bool lease_possible(int64_t timeout_us, int64_t tick_us, int64_t lead_us);
/* The smallest whole second that lease_possible() accepts. */
int64_t lease_smallest_timeout(int64_t tick_us, int64_t lead_us);

#endif
