package config

// Closest returns the candidate that a slip of the keyboard turns into word, or "".
// Allowed are a third of the letters, two at least: enough for a typo, too little for a guess.
func Closest(word string, candidates []string) string {
	best, most := "", max(2, len(word)/3)
	for _, c := range candidates {
		if d := distance(word, c); d <= most && d < len(c) {
			best, most = c, d-1
		}
	}
	return best
}

// distance counts the letters to insert, remove, replace or swap with their neighbour to make b of a.
func distance(a, b string) int {
	row := func() []int { return make([]int, len(b)+1) }
	before, last, now := row(), row(), row()
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
