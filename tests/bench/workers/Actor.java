// SPDX-License-Identifier: MIT
//
// Actor.java - the commands of actor.h in Java; knows nothing of any peer.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

final class Actor {
    /** What one thread needs to take one lock. */
    interface Session {
        void take() throws Exception;

        void drop() throws Exception;
    }

    interface Peer {
        void make(String lock) throws Exception;

        Session session(String lock, boolean shared) throws Exception;
    }

    private final Peer peer;
    private final ConcurrentHashMap<Integer, CountDownLatch> slots = new ConcurrentHashMap<>();

    private Actor(Peer peer) {
        this.peer = peer;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void fail(Throwable reason) {
        say("failed " + reason);
        reason.printStackTrace();
        Runtime.getRuntime().halt(1);
    }

    private interface Work {
        void run() throws Exception;
    }

    private static Thread thread(Work work) {
        // A small stack: there may be thousands.
        Thread thread = new Thread(null, () -> {
            try {
                work.run();
            } catch (Throwable reason) {
                fail(reason);
            }
        }, "taker", 256 << 10);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void take(int slot, String lock, boolean shared) {
        CountDownLatch told = new CountDownLatch(1);
        slots.put(slot, told);
        thread(() -> {
            Session session = peer.session(lock, shared);
            long before = System.nanoTime();
            session.take();
            long after = System.nanoTime();
            say("held " + slot + " " + before + " " + after);
            told.await();
            before = System.nanoTime();
            session.drop();
            after = System.nanoTime();
            say("dropped " + slot + " " + before + " " + after);
        });
    }

    private static final class Cycler implements Work {
        final Session session;
        final CountDownLatch go;
        final long[] window;    // when the run begins, when it ends
        final int pauseUs;
        long[] takes = new long[4096], drops = new long[4096];
        int length;
        Thread thread;

        Cycler(Session session, CountDownLatch go, long[] window, int pauseUs) {
            this.pauseUs = pauseUs;
            this.session = session;
            this.go = go;
            this.window = window;
        }

        @Override
        public void run() throws Exception {
            go.await();
            long gone;
            do {
                long began = System.nanoTime();
                session.take();
                long held = System.nanoTime();
                session.drop();
                gone = System.nanoTime();
                if (pauseUs > 0)
                    LockSupport.parkNanos(pauseUs * 1000L);
                if (began < window[0] || gone > window[1])
                    continue;
                if (length == takes.length) {
                    takes = Arrays.copyOf(takes, 2 * length);
                    drops = Arrays.copyOf(drops, 2 * length);
                }
                takes[length] = held - began;
                drops[length++] = gone - held;
            } while (gone < window[1]);
        }
    }

    private static long part(long[] sorted, double p) {
        return sorted.length == 0 ? 0 : sorted[(int) (p * (sorted.length - 1))];
    }

    private void cycles(int threads, int locks, boolean shared, long warmMs, long runMs, int pauseUs)
        throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        long[] window = new long[2];
        Cycler[] cyclers = new Cycler[threads];
        for (int i = 0; i < threads; i++) {
            cyclers[i] = new Cycler(peer.session("bench" + i % locks, shared), go, window, pauseUs);
            cyclers[i].thread = thread(cyclers[i]);
        }
        window[0] = System.nanoTime() + warmMs * 1000000;
        window[1] = window[0] + runMs * 1000000;
        go.countDown();
        int total = 0, least = Integer.MAX_VALUE, most = 0;
        for (Cycler cycler : cyclers) {
            cycler.thread.join();
            total += cycler.length;
            least = Math.min(least, cycler.length);
            most = Math.max(most, cycler.length);
        }
        long[] takes = new long[total], drops = new long[total];
        int at = 0;
        for (Cycler cycler : cyclers) {
            System.arraycopy(cycler.takes, 0, takes, at, cycler.length);
            System.arraycopy(cycler.drops, 0, drops, at, cycler.length);
            at += cycler.length;
        }
        Arrays.sort(takes);
        Arrays.sort(drops);
        say("cycles {\"cycles\": " + total + ", \"seconds\": " + runMs / 1e3
            + ", \"p50\": " + part(takes, 0.5) + ", \"p90\": " + part(takes, 0.9)
            + ", \"p99\": " + part(takes, 0.99) + ", \"max\": " + part(takes, 1)
            + ", \"drop_p50\": " + part(drops, 0.5)
            + ", \"least\": " + least + ", \"most\": " + most + "}");
    }

    private void obey(String[] words) throws Exception {
        switch (words[0]) {
            case "make":
                peer.make(words[1]);
                say("made");
                break;
            case "take":
                take(Integer.parseInt(words[1]), words[2], words[3].equals("shared"));
                break;
            case "drop":
                slots.remove(Integer.parseInt(words[1])).countDown();
                break;
            case "cycles":
                cycles(Integer.parseInt(words[1]), Integer.parseInt(words[2]), words[3].equals("shared"),
                       Long.parseLong(words[4]), Long.parseLong(words[5]), Integer.parseInt(words[6]));
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    static void run(Peer peer) {
        try {
            Actor actor = new Actor(peer);
            BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
            say("ready");
            for (String line = commands.readLine(); line != null && !line.equals("quit"); line = commands.readLine())
                actor.obey(line.split(" "));
        } catch (Throwable reason) {
            fail(reason);
        }
        Runtime.getRuntime().halt(0);
    }
}
