package dataset

// point lies in a unit box, x to the right and y down.
type point struct{ x, y float64 }

// stroke is a line through points, straight or smooth.
type stroke struct {
	smooth bool
	points []point
}

// glyph is one way of writing a digit.
type glyph []stroke

func straight(xy ...float64) stroke { return stroke{false, pairs(xy)} }
func curved(xy ...float64) stroke   { return stroke{true, pairs(xy)} }

func pairs(xy []float64) []point {
	var p []point
	for i := 0; i < len(xy); i += 2 {
		p = append(p, point{xy[i], xy[i+1]})
	}
	return p
}

// glyphs are the ways in which people write each digit.
func glyphs() [10][]glyph {
	ring := []float64{.5, .1, .29, .22, .22, .5, .29, .78, .5, .9, .71, .78, .78, .5, .71, .22, .5, .1}
	lower := []float64{.42, .46, .68, .5, .77, .68, .66, .87, .45, .91, .24, .82}
	return [10][]glyph{
		{{curved(ring...)}, {curved(.58, .14, .34, .16, .24, .42, .28, .76, .5, .9, .72, .74, .76, .44, .62, .16, .4, .1)}},
		{
			{straight(.5, .1, .5, .9)},
			{straight(.32, .3, .54, .1, .54, .9)},
			{straight(.32, .28, .52, .1, .52, .9), straight(.3, .9, .74, .9)},
		},
		{
			{curved(.23, .3, .33, .13, .55, .09, .74, .22, .7, .44, .5, .66, .22, .9), straight(.22, .9, .8, .9)},
			{curved(.23, .28, .4, .1, .66, .14, .74, .34, .58, .62, .34, .86, .22, .8, .34, .72, .56, .86, .8, .88)},
		},
		{
			{curved(.25, .17, .45, .09, .68, .16, .7, .33, .56, .44, .42, .46), curved(lower...)},
			{straight(.25, .12, .74, .12, .44, .45), curved(lower...)},
		},
		{
			{straight(.64, .9, .64, .1, .2, .64, .82, .64)},
			{straight(.28, .12, .24, .54, .78, .54), straight(.7, .14, .64, .9)},
		},
		{
			{straight(.74, .12, .32, .12, .28, .46), curved(.28, .46, .48, .4, .7, .5, .74, .7, .58, .88, .36, .9, .22, .8)},
			{curved(.7, .12, .44, .13, .3, .2, .3, .42, .52, .44, .72, .58, .7, .8, .48, .91, .24, .84)},
		},
		{
			{curved(.68, .12, .46, .24, .3, .48, .26, .72, .4, .89, .6, .88, .73, .72, .62, .55, .44, .54, .28, .68)},
			{curved(.56, .1, .36, .34, .28, .66, .4, .88, .62, .86, .68, .68, .52, .58, .32, .68)},
		},
		{
			{straight(.22, .12, .78, .12, .42, .9)},
			{straight(.22, .12, .78, .12, .44, .9), straight(.36, .5, .7, .5)},
			{straight(.24, .24, .24, .12), curved(.24, .12, .5, .14, .78, .12, .56, .44, .48, .9)},
		},
		{
			{curved(.5, .48, .3, .34, .34, .15, .5, .09, .67, .15, .7, .34, .5, .48, .27, .66, .33, .85, .5, .91, .68, .85, .74, .66, .5, .48)},
			{curved(.7, .18, .48, .09, .3, .2, .38, .4, .62, .58, .72, .78, .52, .91, .3, .8, .36, .6, .62, .42, .72, .2)},
		},
		{
			{curved(.71, .3, .6, .13, .4, .11, .28, .26, .32, .44, .5, .5, .66, .42, .71, .28), straight(.71, .28, .66, .9)},
			{curved(.71, .26, .54, .1, .34, .18, .3, .38, .46, .5, .66, .4, .72, .22, .73, .52, .62, .78, .36, .9)},
		},
	}
}
