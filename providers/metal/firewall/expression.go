package firewall

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// statement writes a statement of a rule as nft does, or as its JSON where no
// Spec makes such a one.
func statement(v any) string {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return compact(v)
	}
	for kind, arg := range m {
		switch kind {
		case "accept", "drop", "return", "continue", "queue":
			if arg == nil {
				return kind
			}
		case "jump", "goto":
			if target, ok := arg.(map[string]any); ok && len(target) == 1 && target["target"] != nil {
				return kind + " " + compactText(target["target"])
			}
		case "counter":
			return kind // how much it counted is no difference
		case "match":
			if text, ok := match(arg); ok {
				return text
			}
		}
	}
	return compact(v)
}

func match(arg any) (string, bool) {
	m, ok := arg.(map[string]any)
	if !ok || len(m) != 3 {
		return "", false
	}
	left, ok := operand(m["left"])
	if !ok || m["right"] == nil {
		return "", false
	}
	op := ""
	switch m["op"] {
	case "==", "in":
	case "!=", "<", ">", "<=", ">=":
		op = m["op"].(string) + " "
	default:
		return "", false
	}
	return left + " " + op + right(left, m["right"]), true
}

func operand(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", false
	}
	for kind, arg := range m {
		f, ok := arg.(map[string]any)
		if !ok {
			return "", false
		}
		key, _ := f["key"].(string)
		switch {
		case kind == "ct" && key != "" && len(f) == 1:
			return "ct " + key, true
		case kind == "meta" && (key == "iifname" || key == "oifname" || key == "iif" || key == "oif"):
			return key, true
		case kind == "meta" && key != "":
			return "meta " + key, true
		case kind == "payload" && len(f) == 2 && f["protocol"] != nil && f["field"] != nil:
			return compactText(f["protocol"]) + " " + compactText(f["field"]), true
		case kind == "fib" && f["result"] != nil:
			return "fib " + strings.Join(list(f["flags"], compactText), " . ") + " " + compactText(f["result"]), true
		}
	}
	return "", false
}

func right(left string, v any) string {
	switch left {
	case "ct state":
		if m, ok := v.(map[string]any); ok && len(m) == 1 && m["set"] != nil {
			v = m["set"]
		}
		states := list(v, value)
		slices.Sort(states)
		return strings.Join(states, ",")
	case "iifname", "oifname", "iif", "oif":
		if s, ok := v.(string); ok {
			return strconv.Quote(s)
		}
	case "meta l4proto", "ip protocol", "ip6 nexthdr":
		if p, ok := protocolNumber(value(v)); ok {
			return strconv.Itoa(int(p))
		}
	}
	return value(v)
}

// value writes an immediate value: text, a number, a prefix, a range, a set.
func value(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		return strings.Join(list(v, value), ",")
	case map[string]any:
		if len(v) != 1 {
			return compact(v)
		}
		if p, ok := v["prefix"].(map[string]any); ok && len(p) == 2 && p["addr"] != nil && p["len"] != nil {
			return fmt.Sprintf("%s/%s", value(p["addr"]), value(p["len"]))
		}
		if r, ok := v["range"].([]any); ok && len(r) == 2 {
			return value(r[0]) + "-" + value(r[1])
		}
		if s, ok := v["set"]; ok {
			elements := list(s, value)
			return "{ " + strings.Join(elements, ", ") + " }"
		}
	}
	return compact(v)
}
