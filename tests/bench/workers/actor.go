// SPDX-License-Identifier: MIT
//
// actor.go - the commands of actor.h in Go; knows nothing of any peer.

package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// What one thread needs to take one lock.
type session interface {
	take() error
	drop() error
	end()
}

type peer interface {
	make(lock string) error
	session(lock string, shared bool) (session, error)
}

var output sync.Mutex

func say(format string, values ...interface{}) {
	output.Lock()
	defer output.Unlock()
	fmt.Printf(format+"\n", values...)
}

func must(err error) {
	if err != nil {
		say("failed %s", strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// The clock that all processes share; time.Now() does not give its value.
func now() int64 {
	const clockMonotonic = 1
	var at syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

func hold(p peer, slot int, lock string, shared bool, told chan bool) {
	s, err := p.session(lock, shared)
	must(err)
	before := now()
	must(s.take())
	after := now()
	say("held %d %d %d", slot, before, after)
	<-told
	before = now()
	must(s.drop())
	after = now()
	say("dropped %d %d %d", slot, before, after)
	s.end()
}

type cycler struct {
	s            session
	takes, drops []int64
}

// The window: when the run begins, when it ends.
func (c *cycler) run(window *[2]int64, pause time.Duration, start chan bool, done *sync.WaitGroup) {
	defer done.Done()
	<-start
	for {
		began := now()
		must(c.s.take())
		held := now()
		must(c.s.drop())
		gone := now()
		if began >= window[0] && gone <= window[1] {
			c.takes = append(c.takes, held-began)
			c.drops = append(c.drops, gone-held)
		}
		if gone >= window[1] {
			return
		}
		if pause > 0 {
			time.Sleep(pause)
		}
	}
}

func part(sorted []int64, p float64) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(p*float64(len(sorted)-1))]
}

func cycles(p peer, threads, locks int, shared bool, warm, run int64, pause time.Duration) {
	cyclers := make([]*cycler, threads)
	var window [2]int64
	var done sync.WaitGroup
	start := make(chan bool)
	for i := range cyclers {
		s, err := p.session(fmt.Sprintf("bench%d", i%locks), shared)
		must(err)
		cyclers[i] = &cycler{s: s}
		done.Add(1)
		go cyclers[i].run(&window, pause, start, &done)
	}
	window[0] = now() + warm*1000000
	window[1] = window[0] + run*1000000
	close(start)
	done.Wait()
	var takes, drops []int64
	least, most := len(cyclers[0].takes), 0
	for _, c := range cyclers {
		takes = append(takes, c.takes...)
		drops = append(drops, c.drops...)
		if len(c.takes) < least {
			least = len(c.takes)
		}
		if len(c.takes) > most {
			most = len(c.takes)
		}
		c.s.end()
	}
	sort.Slice(takes, func(i, j int) bool { return takes[i] < takes[j] })
	sort.Slice(drops, func(i, j int) bool { return drops[i] < drops[j] })
	say(`cycles {"cycles": %d, "seconds": %f, "p50": %d, "p90": %d, "p99": %d, "max": %d, `+
		`"drop_p50": %d, "least": %d, "most": %d}`, len(takes), float64(run)/1e3, part(takes, 0.5),
		part(takes, 0.9), part(takes, 0.99), part(takes, 1), part(drops, 0.5), least, most)
}

func act(p peer) {
	slots := map[int]chan bool{}
	say("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var lock, mode string
		var slot, threads, locks int
		var warm, run, pause int64
		line := lines.Text()
		if n, _ := fmt.Sscanf(line, "make %s", &lock); n == 1 {
			must(p.make(lock))
			say("made")
		} else if n, _ := fmt.Sscanf(line, "take %d %s %s", &slot, &lock, &mode); n == 3 {
			slots[slot] = make(chan bool, 1)
			go hold(p, slot, lock, mode == "shared", slots[slot])
		} else if n, _ := fmt.Sscanf(line, "drop %d", &slot); n == 1 {
			slots[slot] <- true
			delete(slots, slot)
		} else if n, _ := fmt.Sscanf(line, "cycles %d %d %s %d %d %d", &threads, &locks, &mode, &warm, &run,
			&pause); n == 6 {
			cycles(p, threads, locks, mode == "shared", warm, run, time.Duration(pause)*time.Microsecond)
		} else if line == "quit" {
			break
		} else {
			must(fmt.Errorf("what is %s", line))
		}
	}
	os.Exit(0)
}
