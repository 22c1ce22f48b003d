// Package canvas draws for terminals: curves as braille, and text that is never
// wider than its columns and has nothing in it that moves a cursor.
//
// A line is as wide as its characters, not as its bytes: wide characters take two
// columns, and marks on other characters none.
//
// Entry points: Chart, Clean, CutText, Pad, Width.
package canvas
