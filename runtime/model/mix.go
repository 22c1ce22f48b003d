package model

// Golden is 2⁶⁴ divided by the golden ratio: what SplitMix64 counts by.
const Golden = 0x9e3779b97f4a7c15

// Mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection
// of 64 bits in which every bit of z matters to every bit of the result. It
// makes everything that must be random and equal for all processes: the order
// of an epoch, the held-out records, the masks of dropout.
func Mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
