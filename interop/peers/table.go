package peers

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// column is one figure of a scenario's table.
type column struct {
	title string
	show  func(float64) string
	value func(result) (float64, bool)
}

// of is a figure of one phase.
func of(phase string, figure func(report) (float64, bool)) func(result) (float64, bool) {
	return func(r result) (float64, bool) {
		rep, ok := r.Phases[phase]
		if !ok {
			return 0, false
		}
		return figure(rep)
	}
}

func received(r report) (float64, bool)  { return r.ReceiveRate, r.ReceiveRate > 0 }
func sent(r report) (float64, bool)      { return r.SendRate, r.SendRate > 0 }
func brokerCPU(r report) (float64, bool) { return r.Broker.CPU, r.Broker.CPU > 0 }
func clientCPU(r report) (float64, bool) { return r.ClientCPU, r.ClientCPU > 0 }

func (l *latency) at(quantile func(*latency) float64) (float64, bool) {
	if l == nil {
		return 0, false
	}
	return quantile(l), true
}

func p50(l *latency) float64  { return l.P50 }
func p99(l *latency) float64  { return l.P99 }
func p999(l *latency) float64 { return l.P999 }

func deliveryP50(r report) (float64, bool)  { return r.Delivery.at(p50) }
func deliveryP99(r report) (float64, bool)  { return r.Delivery.at(p99) }
func deliveryP999(r report) (float64, bool) { return r.Delivery.at(p999) }
func confirmP50(r report) (float64, bool)   { return r.Confirm.at(p50) }
func confirmP99(r report) (float64, bool)   { return r.Confirm.at(p99) }

// peakResident is the most resident memory there was in any phase, in MiB.
func peakResident(r result) (float64, bool) {
	var most float64
	for _, rep := range r.Phases {
		most = max(most, rep.Broker.ResidentPeak/(1<<20))
	}
	return most, most > 0
}

// idleResident is the resident memory before any load, in MiB.
func idleResident(r result) (float64, bool) {
	least := 0.0
	for _, rep := range r.Phases {
		if before := rep.Broker.ResidentBefore / (1 << 20); least == 0 || before < least {
			least = before
		}
	}
	return least, least > 0
}

func started(r result) (float64, bool) { return r.StartMS, r.StartMS > 0 }

func micro(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
func whole(v float64) string { return count(v) }

// count is a whole number with its thousands set apart.
func count(v float64) string {
	text := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// spread is the middle of some values with the least and the most: `median (least–most)`.
func spread(values []float64, show func(float64) string) string {
	if len(values) == 0 {
		return "–"
	}
	slices.Sort(values)
	n := len(values)
	middle := (values[(n-1)/2] + values[n/2]) / 2
	if n == 1 {
		return show(middle)
	}
	return fmt.Sprintf("%s (%s–%s)", show(middle), show(values[0]), show(values[n-1]))
}

// tables are all that the results show, in Markdown.
func tables(results []result) string {
	var b strings.Builder
	var brokers, clients []result
	for _, r := range results {
		if r.Scenario == clientScenario {
			clients = append(clients, r)
		} else {
			brokers = append(brokers, r)
		}
	}
	b.WriteString(provenance(brokers))
	if len(clients) > 0 {
		fmt.Fprintf(&b, "### The load itself\n\nTwo clients at the same leto, as fast as it goes, 256 B, unsettled; CPU of producer and consumer together.\n\n%s\n",
			grid(clients, []string{ownClient, protonClient}, clientTable))
	}
	fmt.Fprintf(&b, "### Start and rest\n\nFrom the start of the process to the first session opened, on an empty store, and memory before any load, over all rounds.\n\n")
	b.WriteString(grid(brokers, labels(byDefaults()), []column{{"start ms", count, started}, {"idle RSS MiB", whole, idleResident}}))
	for i := range scenarios {
		s := &scenarios[i]
		var own []result
		for _, r := range brokers {
			if r.Scenario == s.id {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s. %s\n\nRounds: %d.\n\n%s%s", s.id, s.title, rounds(own), grid(own, labels(s.peers()), s.table), voids(own))
	}
	return b.String()
}

// rounds is how many there were.
func rounds(results []result) int {
	seen := map[int]bool{}
	for _, r := range results {
		seen[r.Round] = true
	}
	return len(seen)
}

func labels(peers []*peer) []string {
	var all []string
	for _, p := range peers {
		all = append(all, p.label())
	}
	return all
}

// grid is one table. What is void has no figures.
func grid(results []result, rows []string, columns []column) string {
	var b strings.Builder
	b.WriteString("| broker |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, row := range rows {
		var own []result
		for _, r := range results {
			if r.Peer == row {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "| %s |", row)
		for _, c := range columns {
			var values []float64
			for _, r := range own {
				if v, ok := c.value(r); ok {
					values = append(values, v)
				}
			}
			fmt.Fprintf(&b, " %s |", spread(values, c.show))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// voids names what doesn't count, with the number of rounds in which it was so.
func voids(results []result) string {
	times := map[string]int{}
	for _, r := range results {
		for line := range strings.Lines(r.Void) {
			times[fmt.Sprintf("%s, %s", r.Peer, strings.TrimSpace(line))]++
		}
	}
	var b strings.Builder
	for _, line := range slices.Sorted(maps.Keys(times)) {
		fmt.Fprintf(&b, "\nVoid (%d×): %s.\n", times[line], line)
	}
	return b.String()
}

// provenance says when, where and with what the results were measured.
func provenance(results []result) string {
	if len(results) == 0 {
		return ""
	}
	slices.SortFunc(results, func(a, b result) int { return a.At.Compare(b.At) })
	first, last := results[0], results[len(results)-1]
	m := last.Machine
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s to %s UTC, as `median (least–most)` of the rounds.\n",
		first.At.Format("2006-01-02 15:04"), last.At.Format("15:04"))
	fmt.Fprintf(&b, "Machine: %s, %d cores, %s, %s, data on %s; %s.\n\n", m.CPU, m.Cores, m.Memory, m.Kernel, m.Disk, m.Java)
	b.WriteString("| broker | version | `accepted` for a durable message means |\n|---|---|---|\n")
	for _, p := range all() {
		var versions []string
		for _, r := range results {
			if r.Peer == p.label() && !slices.Contains(versions, r.Version) {
				versions = append(versions, r.Version)
			}
		}
		if len(versions) > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", p.label(), strings.Join(versions, ", "), p.accepted)
		}
	}
	return b.String() + "\n"
}
