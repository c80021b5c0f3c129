package peers

import (
	"fmt"
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
	b.WriteString(provenance(results))
	fmt.Fprintf(&b, "### Start and rest\n\nFrom the start of the process to the first session opened, on an empty store, and memory before any load, over all rounds.\n\n")
	b.WriteString(grid(results, byDefaults(), []column{{"start ms", count, started}, {"idle RSS MiB", whole, idleResident}}))
	for i := range scenarios {
		s := &scenarios[i]
		var own []result
		for _, r := range results {
			if r.Scenario == s.id {
				own = append(own, r)
			}
		}
		if len(own) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s. %s\n\n%s", s.id, s.title, grid(own, s.peers(), s.table))
	}
	return b.String()
}

// grid is one table. What is void is named below it, and counts in none of its figures.
func grid(results []result, peers []*peer, columns []column) string {
	var b, void strings.Builder
	b.WriteString("| broker |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s |", c.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(columns)) + "\n")
	for _, p := range peers {
		var good []result
		for _, r := range results {
			switch {
			case r.Peer != p.label():
			case r.Void != "":
				fmt.Fprintf(&void, "Void: %s, round %d of scenario %s: %s.\n", r.Peer, r.Round, r.Scenario, firstLine(r.Void))
			default:
				good = append(good, r)
			}
		}
		if len(good) == 0 && !strings.Contains(void.String(), "Void: "+p.label()) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", p.label())
		for _, c := range columns {
			var values []float64
			for _, r := range good {
				if v, ok := c.value(r); ok {
					values = append(values, v)
				}
			}
			fmt.Fprintf(&b, " %s |", spread(values, c.show))
		}
		b.WriteString("\n")
	}
	if void.Len() > 0 {
		b.WriteString("\n" + void.String())
	}
	return b.String()
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// provenance says when, where and with what the results were measured.
func provenance(results []result) string {
	if len(results) == 0 {
		return ""
	}
	slices.SortFunc(results, func(a, b result) int { return a.At.Compare(b.At) })
	first, last := results[0], results[len(results)-1]
	rounds := 0
	for _, r := range results {
		rounds = max(rounds, r.Round)
	}
	m := last.Machine
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s to %s UTC, up to %d rounds a scenario, as `median (least–most)`.\n",
		first.At.Format("2006-01-02 15:04"), last.At.Format("15:04"), rounds)
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
