package state

// equalJSON reports whether two valid JSON texts are equal except for white
// space between tokens.
func equalJSON(a, b []byte) bool {
	i, j := 0, 0
	for {
		i, j = skipSpace(a, i), skipSpace(b, j)
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i] != b[j] {
			return false
		}
		if a[i] != '"' {
			i, j = i+1, j+1
			continue
		}
		n := stringEnd(a, i)
		if j+n-i > len(b) || string(a[i:n]) != string(b[j:j+n-i]) {
			return false
		}
		i, j = n, j+n-i
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the index after the string that starts at b[i].
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
