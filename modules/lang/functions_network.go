package lang

import (
	"math/big"
	"net"
	"strconv"
	"strings"

	"github.com/apparentlymart/go-cidr/cidr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/gocty"
)

var cidrhostFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "prefix", Type: cty.String},
		{Name: "hostnum", Type: cty.Number},
	},
	Type:         function.StaticReturnType(cty.String),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		network, err := parsePrefix(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		var num *big.Int
		if err := gocty.FromCtyValue(args[1], &num); err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "it must be a whole number")
		}
		ip, err := cidr.HostBig(network, num)
		if err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(ip.String()), nil
	},
})

var cidrnetmaskFunc = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "prefix", Type: cty.String}},
	Type:         function.StaticReturnType(cty.String),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		network, err := parsePrefix(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		if network.IP.To4() == nil {
			return cty.NilVal, function.NewArgErrorf(0, "only IPv4 has netmasks")
		}
		return cty.StringVal(net.IP(network.Mask).String()), nil
	},
})

var cidrsubnetFunc = function.New(&function.Spec{
	Params: []function.Parameter{
		{Name: "prefix", Type: cty.String},
		{Name: "newbits", Type: cty.Number},
		{Name: "netnum", Type: cty.Number},
	},
	Type:         function.StaticReturnType(cty.String),
	RefineResult: notNull,
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		network, err := parsePrefix(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		var bits int
		if err := gocty.FromCtyValue(args[1], &bits); err != nil {
			return cty.NilVal, function.NewArgErrorf(1, "it must be a whole number")
		}
		var num *big.Int
		if err := gocty.FromCtyValue(args[2], &num); err != nil {
			return cty.NilVal, function.NewArgErrorf(2, "it must be a whole number")
		}
		subnet, err := cidr.SubnetBig(network, bits, num)
		if err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(subnet.String()), nil
	},
})

var cidrsubnetsFunc = function.New(&function.Spec{
	Params:       []function.Parameter{{Name: "prefix", Type: cty.String}},
	VarParam:     &function.Parameter{Name: "newbits", Type: cty.Number},
	Type:         function.StaticReturnType(cty.List(cty.String)),
	RefineResult: notNull,
	Impl:         cidrsubnets,
})

func cidrsubnets(args []cty.Value, _ cty.Type) (cty.Value, error) {
	network, err := parsePrefix(args[0])
	if err != nil {
		return cty.NilVal, err
	}
	start, total := network.Mask.Size()
	subnets := make([]cty.Value, 0, len(args)-1)
	var current *net.IPNet
	for i, arg := range args[1:] {
		var bits int
		if err := gocty.FromCtyValue(arg, &bits); err != nil {
			return cty.NilVal, function.NewArgErrorf(i+1, "it must be a whole number")
		}
		length := start + bits
		switch {
		case bits < 1:
			return cty.NilVal, function.NewArgErrorf(i+1, "the prefix must become longer by a bit at least")
		case bits > 32:
			return cty.NilVal, function.NewArgErrorf(i+1, "the prefix may become longer by 32 bits at most")
		case length > total:
			return cty.NilVal, function.NewArgErrorf(i+1, "the prefix would have %d bits, but an address has %d", length, total)
		}
		wraps := false
		if current == nil {
			current = &net.IPNet{IP: network.IP, Mask: net.CIDRMask(length, total)}
		} else {
			current, wraps = cidr.NextSubnet(current, length)
		}
		if wraps || !network.Contains(current.IP) {
			return cty.NilVal, function.NewArgErrorf(i+1, "no space is left in %s for another subnet of %d bits", network, length)
		}
		subnets = append(subnets, cty.StringVal(current.String()))
	}
	if len(subnets) == 0 {
		return cty.ListValEmpty(cty.String), nil
	}
	return cty.ListVal(subnets), nil
}

// parsePrefix reads a network in CIDR notation. IPv4 numbers may have leading
// zeros and are decimal all the same.
func parsePrefix(v cty.Value) (*net.IPNet, error) {
	text := v.AsString()
	if address, length, ok := strings.Cut(text, "/"); ok && !strings.Contains(address, ":") {
		parts := strings.Split(address, ".")
		for i, part := range parts {
			if n, err := strconv.ParseUint(part, 10, 8); err == nil {
				parts[i] = strconv.FormatUint(n, 10)
			}
		}
		text = strings.Join(parts, ".") + "/" + length
	}
	_, network, err := net.ParseCIDR(text)
	if err != nil {
		return nil, function.NewArgErrorf(0, "it is not a network in CIDR notation, such as 10.0.0.0/8")
	}
	return network, nil
}
