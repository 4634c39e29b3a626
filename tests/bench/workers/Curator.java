// SPDX-License-Identifier: MIT
//
// Curator.java - Curator's locks, one client for all threads, as its documentation wants it:
//
//     Curator mutex SERVERS [ROOT]        InterProcessMutex
//     Curator readwrite SERVERS [ROOT]    InterProcessReadWriteLock

import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

final class Curator {
    private static final int SESSION_MS = 15000, CONNECT_MS = 15000;

    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            args[1], SESSION_MS, CONNECT_MS, new ExponentialBackoffRetry(100, 3));
        client.start();
        if (!client.blockUntilConnected(30, TimeUnit.SECONDS))
            throw new IllegalStateException("not connected");
        String root = (args.length > 2 ? args[2] : "/bench") + "/";
        boolean readWrite = args[0].equals("readwrite");
        Actor.run(new Actor.Peer() {
            @Override
            public void make(String lock) throws Exception {
                client.createContainers(root + lock);
            }

            @Override
            public Actor.Session session(String lock, boolean shared) {
                if (shared && !readWrite)
                    throw new IllegalArgumentException("exclusive only");
                InterProcessMutex mutex;
                if (readWrite) {
                    InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, root + lock);
                    mutex = shared ? both.readLock() : both.writeLock();
                } else {
                    mutex = new InterProcessMutex(client, root + lock);
                }
                return new Actor.Session() {
                    @Override
                    public void take() throws Exception {
                        mutex.acquire();
                    }

                    @Override
                    public void drop() throws Exception {
                        mutex.release();
                    }
                };
            }
        });
    }
}
