package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// usage is what processes have taken so far.
type usage struct {
	user, system time.Duration
	resident     int64 // bytes, shared ones counted in each process
}

func (u usage) cpu() time.Duration { return u.user + u.system }

// less is the time taken since an earlier moment.
func (u usage) less(earlier usage) usage {
	return usage{user: u.user - earlier.user, system: u.system - earlier.system, resident: u.resident}
}

// usageOf adds up a process and all its descendants. What can't be read counts
// nothing: a process may end while it is looked at.
func usageOf(pid int) usage {
	var sum usage
	if pid <= 0 {
		return sum
	}
	for open := []int{pid}; len(open) > 0; {
		pid, open = open[len(open)-1], open[:len(open)-1]
		sum = sum.plus(usageOfOne(pid))
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, thread := range threads {
			children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
			for _, text := range strings.Fields(string(children)) {
				if child, err := strconv.Atoi(text); err == nil {
					open = append(open, child)
				}
			}
		}
	}
	return sum
}

func (u usage) plus(other usage) usage {
	return usage{user: u.user + other.user, system: u.system + other.system, resident: u.resident + other.resident}
}

func usageOfOne(pid int) usage {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}
	}
	// The command's name may hold spaces: count from its closing bracket.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 22 {
		return usage{}
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(fields[i], 10, 64)
		return n
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100 wherever Linux runs Go
	return usage{
		user: time.Duration(number(11)) * tick, system: time.Duration(number(12)) * tick,
		resident: number(21) * int64(os.Getpagesize()),
	}
}

// watchResident samples the resident memory of a process tree four times a second
// until the returned function is called, which returns the most there was.
func watchResident(pid int) func() int64 {
	peak := usageOf(pid).resident
	if pid <= 0 {
		return func() int64 { return 0 }
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		ticker := time.NewTicker(250 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				peak = max(peak, usageOf(pid).resident)
			}
		}
	})
	return func() int64 { close(stop); wg.Wait(); return max(peak, usageOf(pid).resident) }
}
