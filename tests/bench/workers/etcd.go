// SPDX-License-Identifier: MIT
//
// etcd.go - etcd's own client and its concurrency.Mutex: etcd SERVERS
//
// One client for all threads, and a session (a lease) for each: with one lease a
// second taker of a lock holds it at once.

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
)

const ttlSeconds = 10

type etcd struct{ client *clientv3.Client }

type etcdSession struct {
	lease *concurrency.Session
	mutex *concurrency.Mutex
}

func (e etcd) make(string) error { return nil }

func (e etcd) session(lock string, shared bool) (session, error) {
	if shared {
		return nil, fmt.Errorf("exclusive only")
	}
	lease, err := concurrency.NewSession(e.client, concurrency.WithTTL(ttlSeconds))
	if err != nil {
		return nil, err
	}
	return etcdSession{lease, concurrency.NewMutex(lease, "/bench/"+lock)}, nil
}

func (s etcdSession) take() error { return s.mutex.Lock(context.Background()) }
func (s etcdSession) drop() error { return s.mutex.Unlock(context.Background()) }
func (s etcdSession) end()        { s.lease.Close() }

func main() {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(os.Args[1], ","), DialTimeout: 10 * time.Second})
	must(err)
	act(etcd{client})
}
