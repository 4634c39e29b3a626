// SPDX-License-Identifier: MIT
//
// Kinds.java - Curator's locks of several kinds, one client for all: Kinds SERVERS ROOT
//
// The kind is the first word of the lock's name: `zklockfs-3` is a lock that is taken by the driver of
// examples/clients/. The commands are those of tests/bench/workers/actor.h.

import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

final class Kinds {
    private static final int SESSION_MS = 15000, CONNECT_MS = 60000, LEASES = 2;

    private static final class Semaphore implements Actor.Session {
        private final InterProcessSemaphoreV2 semaphore;
        private Lease lease;

        Semaphore(CuratorFramework client, String path) {
            semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
        }

        @Override
        public void take() throws Exception {
            lease = semaphore.acquire();
        }

        @Override
        public void drop() {
            semaphore.returnLease(lease);
        }
    }

    private static final class Latch implements Actor.Session {
        private final LeaderLatch latch;

        Latch(CuratorFramework client, String path) {
            latch = new LeaderLatch(client, path);
        }

        @Override
        public void take() throws Exception {
            latch.start();
            latch.await();
        }

        @Override
        public void drop() throws Exception {
            latch.close();
        }
    }

    private static InterProcessLock lock(CuratorFramework client, String kind, String path, boolean shared) {
        switch (kind) {
            case "mutex":
                return new InterProcessMutex(client, path);
            case "rw":
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
                return shared ? both.readLock() : both.writeLock();
            case "zklockfs":
                return new InterProcessMutex(client, path,
                                             shared ? ZklockfsDriver.shared() : ZklockfsDriver.exclusive());
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static Actor.Session session(InterProcessLock lock) {
        return new Actor.Session() {
            @Override
            public void take() throws Exception {
                lock.acquire();
            }

            @Override
            public void drop() throws Exception {
                lock.release();
            }
        };
    }

    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            args[0], SESSION_MS, CONNECT_MS, new ExponentialBackoffRetry(100, 3));
        client.start();
        if (!client.blockUntilConnected(5, TimeUnit.MINUTES))
            throw new IllegalStateException("not connected");
        Actor.run(new Actor.Peer() {
            @Override
            public void make(String lock) throws Exception {
                client.createContainers(args[1] + "/" + lock);
            }

            @Override
            public Actor.Session session(String name, boolean shared) {
                String kind = name.split("-")[0], path = args[1] + "/" + name;
                switch (kind) {
                    case "semaphore":
                        return new Semaphore(client, path);
                    case "latch":
                        return new Latch(client, path);
                    default:
                        return Kinds.session(lock(client, kind, path, shared));
                }
            }
        });
    }
}
