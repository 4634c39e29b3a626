// SPDX-License-Identifier: MIT
//
// gozk.go - go-zookeeper's Lock: gozk SERVERS [ROOT]. One connection for all threads.

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

const sessionTimeout = 15 * time.Second

type quiet struct{}

func (quiet) Printf(string, ...interface{}) {}

type gozk struct {
	conn *zk.Conn
	root string
}

type gozkSession struct{ lock *zk.Lock }

func (g gozk) make(lock string) error {
	for _, path := range []string{g.root, g.root + "/" + lock} {
		if _, err := g.conn.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists {
			return err
		}
	}
	return nil
}

func (g gozk) session(lock string, shared bool) (session, error) {
	if shared {
		return nil, fmt.Errorf("exclusive only")
	}
	return gozkSession{zk.NewLock(g.conn, g.root+"/"+lock, zk.WorldACL(zk.PermAll))}, nil
}

func (s gozkSession) take() error { return s.lock.Lock() }
func (s gozkSession) drop() error { return s.lock.Unlock() }
func (s gozkSession) end()        {}

func main() {
	conn, _, err := zk.Connect(strings.Split(os.Args[1], ","), sessionTimeout,
		func(c *zk.Conn) { c.SetLogger(quiet{}) })
	must(err)
	root := "/bench"
	if len(os.Args) > 2 {
		root = os.Args[2]
	}
	act(gozk{conn, root})
}
