// SPDX-License-Identifier: MIT
//
// ZklockfsDriver.java - Curator's mutex in the same queue as zklockfs, go-zookeeper and the recipes
// of ZooKeeper, exclusive or shared. Curator's read-write lock uses names for which none of these
// waits.
//
//     InterProcessLock write = new InterProcessMutex(client, "/locks/build", ZklockfsDriver.exclusive());
//     InterProcessLock read = new InterProcessMutex(client, "/locks/build", ZklockfsDriver.shared());
//
// A plain InterProcessMutex is exclusive in that queue, too; it does not wait for the recipes of
// ZooKeeper, and the exclusive lock made here does. Shared ones hold together with the file `shared`
// and with Shared of zklockfs_kazoo.py. A thread that holds one of both must not take the other: it
// would wait for itself.

import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.PredicateResults;
import org.apache.curator.framework.recipes.locks.StandardLockInternalsDriver;
import org.apache.zookeeper.KeeperException;

public final class ZklockfsDriver extends StandardLockInternalsDriver {
    private static final int DIGITS = 10;
    private final boolean shared;

    private ZklockfsDriver(boolean shared) {
        this.shared = shared;
    }

    public static ZklockfsDriver exclusive() {
        return new ZklockfsDriver(false);
    }

    public static ZklockfsDriver shared() {
        return new ZklockfsDriver(true);
    }

    @Override
    public String createsTheLock(CuratorFramework client, String path, byte[] data) throws Exception {
        // The path ends in `/lock-`.
        return super.createsTheLock(client, shared ? path.replaceFirst("lock-$", "rlock-") : path, data);
    }

    @Override
    public PredicateResults getsTheLock(CuratorFramework client, List<String> sorted, String ours, int maxLeases)
        throws Exception {
        String before = null;
        for (String child : sorted) {
            if (child.equals(ours))
                return new PredicateResults(before, before == null);
            if (child.matches("(?s).*\\d{10}") && !(shared && child.matches("(?s).*-rlock-\\d{10}")))
                before = child;
        }
        throw new KeeperException.NoNodeException(ours);    // Curator makes another entry
    }

    @Override
    public String fixForSorting(String child, String lockName) {
        return child.substring(Math.max(0, child.length() - DIGITS));
    }
}
