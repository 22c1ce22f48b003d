package watch

import (
	"unicode"
	"unicode/utf8"
)

// Keys that are not characters.
const (
	keyNone rune = -iota - 1
	keyUp
	keyDown
	keyLeft
	keyRight
	keyBackTab
	keyPageUp
	keyPageDown
)

const (
	keyInterrupt = 0x03
	keyEnd       = 0x04
	keyEscape    = 0x1b
	keyDelete    = 0x7f
	longestWord  = 100 // characters of a search
)

// nextKey returns the first key of what a terminal sent, and the bytes that it takes.
func nextKey(b []byte) (key rune, n int) {
	if b[0] != keyEscape {
		key, n = utf8.DecodeRune(b)
		if key == utf8.RuneError {
			key = keyNone
		}
		return key, n
	}
	if len(b) < 3 || b[1] != '[' && b[1] != 'O' {
		return keyEscape, 1
	}
	for n = 2; n < len(b) && (b[n] < 0x40 || b[n] > 0x7e); n++ {
	}
	if n == len(b) {
		return keyNone, n
	}
	switch b[n] {
	case 'A':
		key = keyUp
	case 'B':
		key = keyDown
	case 'C':
		key = keyRight
	case 'D':
		key = keyLeft
	case 'Z':
		key = keyBackTab
	case '~':
		switch b[2] {
		case '5':
			key = keyPageUp
		case '6':
			key = keyPageDown
		default:
			key = keyNone
		}
	default:
		key = keyNone
	}
	return key, n + 1
}

// press changes the choice as a key does. It reports whether the key leaves.
func (c *choice) press(key rune, runs, roles, page int) (leaves bool) {
	if key == keyInterrupt {
		return true
	}
	if c.typing {
		c.typeKey(key)
		return false
	}
	if c.help {
		c.help = false
		return key == 'q'
	}
	switch key {
	case 'q', keyEnd:
		return true
	case '?', 'h':
		c.help = true
	case 'p', ' ':
		c.paused = !c.paused
	case '/':
		c.typing, c.search, c.scroll = true, "", 0
	case keyEscape:
		c.search, c.scroll = "", 0
	case 'm':
		c.metric++
	case '\t', keyRight, keyBackTab, keyLeft:
		c.turn(key, runs)
	case keyDown, 'j':
		c.role, c.scroll = (c.role+1)%(roles+1), 0
	case keyUp, 'k':
		c.role, c.scroll = (c.role+roles)%(roles+1), 0
	case keyPageUp:
		c.scroll = min(c.scroll+page, keptLines)
	case keyPageDown:
		c.scroll = max(0, c.scroll-page)
	}
	return false
}

// turn chooses the next run, or the one before.
func (c *choice) turn(key rune, runs int) {
	by := 1
	if key == keyBackTab || key == keyLeft {
		by = runs - 1
	}
	c.run, c.role, c.scroll, c.metric = (c.run+by)%max(1, runs), 0, 0, 0
}

// typeKey changes the searched text.
func (c *choice) typeKey(key rune) {
	switch {
	case key == '\r' || key == '\n':
		c.typing = false
	case key == keyEscape:
		c.typing, c.search = false, ""
	case key == keyDelete || key == '\b':
		_, n := utf8.DecodeLastRuneInString(c.search)
		c.search = c.search[:len(c.search)-n]
	case key > 0 && unicode.IsPrint(key) && utf8.RuneCountInString(c.search) < longestWord:
		c.search += string(key)
	}
}
