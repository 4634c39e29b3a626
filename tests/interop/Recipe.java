// SPDX-License-Identifier: MIT
//
// Recipe.java - ZooKeeper's own lock recipe in Java: Recipe SERVERS ROOT
//
// The recipe tells takers apart by their sessions: two locks on one session hold at
// once. So each taker has a session of its own.

import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

final class Recipe {
    private static final int SESSION_MS = 15000;

    private static ZooKeeper connect(String servers) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(servers, SESSION_MS, (WatchedEvent event) -> {
            if (event.getState() == Watcher.Event.KeeperState.SyncConnected)
                connected.countDown();
        });
        connected.await();
        return client;
    }

    public static void main(String[] args) {
        Actor.run(new Actor.Peer() {
            @Override
            public void make(String lock) {
                throw new UnsupportedOperationException("mkdir makes it");
            }

            @Override
            public Actor.Session session(String lock, boolean shared) throws Exception {
                ZooKeeper client = connect(args[0]);
                CountDownLatch acquired = new CountDownLatch(1);
                WriteLock recipe = new WriteLock(client, args[1] + "/" + lock, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                    new LockListener() {
                        @Override
                        public void lockAcquired() {
                            acquired.countDown();
                        }

                        @Override
                        public void lockReleased() {
                        }
                    });
                return new Actor.Session() {
                    @Override
                    public void take() throws Exception {
                        recipe.lock();
                        acquired.await();
                    }

                    @Override
                    public void drop() throws Exception {
                        recipe.unlock();
                        client.close();
                    }
                };
            }
        });
    }
}
