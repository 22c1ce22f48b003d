package train

import (
	"strconv"
	"strings"
)

// thousands writes a count for people: 5,120.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// capital begins an error as a sentence, whose full stop is left to the caller.
func capital(err error) string {
	text := strings.TrimRight(err.Error(), ".")
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
