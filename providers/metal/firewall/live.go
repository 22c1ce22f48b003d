package firewall

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ReadTable reads what `nft -j list table inet stoke` says. A rule that no
// Spec makes is read, too, as nft would write it or else as its JSON, so that
// it can be shown.
func ReadTable(data []byte) (NftTable, error) {
	objects, err := readObjects(data)
	if err != nil {
		return NftTable{}, err
	}
	var t NftTable
	chains := map[string]int{}
	for _, o := range objects {
		if o.kind == "metainfo" {
			continue
		}
		if f, name := o.text("family"), o.tableName(); f != "inet" || name != tableName {
			return NftTable{}, fmt.Errorf("read nft: a %s of table %q %q, asked was inet %s", o.kind, f, name, tableName)
		}
		switch o.kind {
		case "table":
			if flags := o.fields["flags"]; flags != nil { // ours has none; one that is dormant does nothing
				t.Other = append(t.Other, "table: flags "+tableFlags(flags))
			}
		case "chain":
			chains[o.text("name")] = len(t.Chains)
			t.Chains = append(t.Chains, Chain{Name: o.text("name"), Hook: o.hook()})
		case "rule":
			at, known := chains[o.text("chain")]
			if !known {
				return NftTable{}, fmt.Errorf("read nft: a rule of the chain %q, which is not there", o.text("chain"))
			}
			rule, err := o.rule()
			if err != nil {
				return NftTable{}, fmt.Errorf("read nft: chain %s: %w", t.Chains[at].Name, err)
			}
			t.Chains[at].Rules = append(t.Chains[at].Rules, rule)
		case "set":
			set, err := o.set()
			if err != nil {
				return NftTable{}, fmt.Errorf("read nft: set %s: %w", o.text("name"), err)
			}
			t.Sets = append(t.Sets, set)
		default:
			t.Other = append(t.Other, o.kind+" "+o.text("name")+": "+compact(o.fields["elem"]))
		}
	}
	t.sort()
	return t, nil
}

// tableFlags are those of a table. Some versions of nft say anything in place of
// "dormant", such as "inet" or "ipv4_addr".
func tableFlags(v any) string {
	flags := list(v, compactText)
	if slices.ContainsFunc(flags, func(f string) bool { return !slices.Contains([]string{"dormant", "owner", "persist"}, f) }) {
		return "dormant"
	}
	return strings.Join(flags, ",")
}

// object is one thing in what nft -j says.
type object struct {
	kind   string
	fields map[string]any
}

func readObjects(data []byte) ([]object, error) {
	var doc struct {
		Nftables []map[string]json.RawMessage `json:"nftables"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("read nft: %w", err)
	}
	if len(doc.Nftables) == 0 || doc.Nftables[0]["metainfo"] == nil {
		return nil, fmt.Errorf("read nft: it does not begin with metainfo")
	}
	var objects []object
	for _, m := range doc.Nftables {
		if len(m) != 1 {
			return nil, fmt.Errorf("read nft: %d things where one is expected", len(m))
		}
		for kind, raw := range m {
			o := object{kind: kind}
			if err := json.Unmarshal(raw, &o.fields); err != nil {
				return nil, fmt.Errorf("read nft: %s: %w", kind, err)
			}
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (o object) text(field string) string {
	s, _ := o.fields[field].(string)
	return s
}

func (o object) tableName() string {
	if o.kind == "table" {
		return o.text("name")
	}
	return o.text("table")
}

// hook renders the hook of a base chain, as in a file.
func (o object) hook() string {
	if o.text("hook") == "" {
		return ""
	}
	h := fmt.Sprintf("type %s hook %s priority %s", o.text("type"), o.text("hook"), value(o.fields["prio"]))
	if dev := o.fields["dev"]; dev != nil {
		h += " device " + compact(dev)
	}
	if p := o.text("policy"); p != "" {
		h += "; policy " + p
	}
	return h
}

func (o object) rule() (string, error) {
	exprs, ok := o.fields["expr"].([]any)
	if !ok {
		return "", fmt.Errorf("a rule without expressions")
	}
	words := make([]string, 0, len(exprs)+1)
	for _, e := range exprs {
		words = append(words, statement(e))
	}
	if c := o.text("comment"); c != "" {
		words = append(words, "comment "+strconv.Quote(c))
	}
	return strings.Join(words, " "), nil
}

func (o object) set() (Set, error) {
	s := Set{Name: o.text("name"), Type: "type " + strings.Join(list(o.fields["type"], compactText), " . ")}
	if flags := list(o.fields["flags"], compactText); len(flags) > 0 {
		s.Type += "; flags " + strings.Join(flags, ",")
	}
	for _, extra := range []string{"timeout", "gc-interval", "size", "policy", "auto-merge", "stmt"} {
		if v := o.fields[extra]; v != nil {
			s.Type += "; " + extra + " " + compact(v)
		}
	}
	if s.Name == "" || o.fields["type"] == nil {
		return s, fmt.Errorf("it has no name or no type")
	}
	elements, isList := o.fields["elem"].([]any)
	if o.fields["elem"] != nil && !isList {
		return s, fmt.Errorf("its elements are no list")
	}
	for _, e := range elements {
		s.Elements = append(s.Elements, value(e))
	}
	return s, nil
}

// list reads what newer versions of nft write without brackets when it is one.
func list(v any, each func(any) string) []string {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		out := make([]string, len(v))
		for i, e := range v {
			out[i] = each(e)
		}
		return out
	}
	return []string{each(v)}
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(b)
}

// compactText is text as it is and anything else as JSON.
func compactText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return compact(v)
}

func parseRange(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	return netip.ParsePrefix(s)
}

// ParseRange reads an address or a range in CIDR notation. Bits of the host
// must be zero, or a mistake would open more than was meant.
func ParseRange(s string) (netip.Prefix, error) {
	r, err := parseRange(s)
	switch {
	case err != nil || strings.Contains(s, "%"): // a zone means nothing in a rule
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a range such as 192.0.2.0/24", s)
	case r.Addr().Is4In6():
		return netip.Prefix{}, fmt.Errorf("%q is IPv4 within IPv6, which no packet has: write it as IPv4", s)
	case r != r.Masked():
		return netip.Prefix{}, fmt.Errorf("%q has bits set behind its length: is %s meant?", s, r.Masked())
	}
	return r, nil
}
