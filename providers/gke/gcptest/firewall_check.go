package gcptest

import (
	"fmt"
	"net/http"
	"net/mail"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	compute "google.golang.org/api/compute/v1"
)

// checkFirewall rejects an invalid rule. The valid combinations are in the
// descriptions of the fields of Firewall in the discovery document of compute v1,
// and in https://cloud.google.com/firewall/docs/firewalls.
func checkFirewall(f *compute.Firewall) error {
	tags, accounts := len(f.SourceTags)+len(f.TargetTags), len(f.SourceServiceAccounts)+len(f.TargetServiceAccounts)
	switch {
	case len(f.Allowed) == 0 && len(f.Denied) == 0:
		return computeInvalid("Invalid value for field 'resource.allowed': ''. Firewall rule must specify at least one allowed or denied protocol.")
	case len(f.Allowed) > 0 && len(f.Denied) > 0:
		return computeInvalid("Invalid value for field 'resource': ''. A firewall rule cannot have both allowed and denied.")
	case f.Direction == "EGRESS" && len(f.SourceTags)+len(f.SourceServiceAccounts) > 0:
		return computeInvalid("Invalid value for field 'resource.sourceTags': ''. Egress rules have no source tags.")
	case f.Priority < 0 || f.Priority > 65535:
		return computeInvalid("Invalid value for field 'resource.priority': '%d'. Must be between 0 and 65535", f.Priority)
	case tags > 0 && accounts > 0:
		return computeInvalid("Invalid value for field 'resource.sourceTags': ''. Tags and service accounts cannot be mixed.")
	case len(f.Description) > 2048:
		return tooLarge("description", 2048, len(f.Description))
	}
	for i, a := range f.Allowed {
		if err := checkTraffic(fmt.Sprintf("resource.allowed[%d]", i), &a.IPProtocol, a.Ports); err != nil {
			return err
		}
	}
	for i, d := range f.Denied {
		if err := checkTraffic(fmt.Sprintf("resource.denied[%d]", i), &d.IPProtocol, d.Ports); err != nil {
			return err
		}
	}
	return checkEnds(f)
}

// tooLarge is how compute v1 says that there is too much of something
// (hashicorp/terraform-provider-google#1417).
func tooLarge(field string, most, are int) error {
	return &restError{http.StatusRequestEntityTooLarge, "fieldSizeTooLarge",
		fmt.Sprintf("Value for field 'resource.%s' is too large: maximum size %d element(s); actual size %d.", field, most, are)}
}

// protocols are those that firewall rules know by name, in the order of Google's
// own list (terraform-google-modules/terraform-google-network#535).
var protocols = []string{"ah", "all", "esp", "icmp", "ipip", "sctp", "tcp", "udp"}

// ported are the protocols that have ports, says gcloud compute firewall-rules
// create --help, by name and number.
var ported = []string{"sctp", "tcp", "udp", "132", "6", "17"}

// checkTraffic refuses what is no protocol, and ports that it does not have or
// that are none. The name of a protocol becomes small, because
// terraform-provider-google takes no difference of case for one.
func checkTraffic(field string, protocol *string, ports []string) error {
	*protocol = strings.ToLower(*protocol)
	if number, err := strconv.ParseUint(*protocol, 10, 8); !slices.Contains(protocols, *protocol) && (err != nil || strconv.FormatUint(number, 10) != *protocol) {
		return computeInvalid("Invalid value for field '%s.IPProtocol': '%s'. Must be one of [\"%s\"] or an IP protocol number between 0 and 255.", field, *protocol, strings.Join(protocols, `", "`))
	}
	if len(ports) > 0 && !slices.Contains(ported, *protocol) {
		return computeInvalid("Invalid value for field '%s.ports': ''. Ports may only be specified for TCP, UDP and SCTP.", field)
	}
	for i, text := range ports {
		from, to, ranged := strings.Cut(text, "-")
		if !ranged {
			to = from
		}
		low, err := strconv.ParseUint(from, 10, 16)
		high, again := strconv.ParseUint(to, 10, 16)
		if err != nil || again != nil || low > high {
			return computeInvalid("Invalid value for field '%s.ports[%d]': '%s'. Ports must be an integer or a range of integers between 0 and 65535.", field, i, text)
		}
	}
	return nil
}

// checkEnds refuses ranges, tags and service accounts that are none, or too many:
// https://cloud.google.com/firewall/docs/quotas#per_firewall_rule.
func checkEnds(f *compute.Firewall) error {
	for _, end := range []struct {
		field string
		names []string
		most  int
		check func(field, name string) error
	}{
		{"sourceRanges", f.SourceRanges, 5000, checkRange},
		{"destinationRanges", f.DestinationRanges, 5000, checkRange},
		{"sourceTags", f.SourceTags, 30, checkTag},
		{"targetTags", f.TargetTags, 70, checkTag},
		{"sourceServiceAccounts", f.SourceServiceAccounts, 10, checkAccount},
		{"targetServiceAccounts", f.TargetServiceAccounts, 10, checkAccount},
	} {
		if len(end.names) > end.most {
			return tooLarge(end.field, end.most, len(end.names))
		}
		for i, name := range end.names {
			if err := end.check(fmt.Sprintf("resource.%s[%d]", end.field, i), name); err != nil {
				return err
			}
		}
	}
	for field, ranges := range map[string][]string{"sourceRanges": f.SourceRanges, "destinationRanges": f.DestinationRanges} {
		six := func(text string) bool { return strings.Contains(text, ":") }
		if slices.ContainsFunc(ranges, six) && slices.ContainsFunc(ranges, func(text string) bool { return !six(text) }) {
			return computeInvalid("Invalid value for field 'resource.%s': ''. IPv4 and IPv6 ranges cannot be in one rule.", field)
		}
	}
	return nil
}

// checkRange rejects an invalid range, and a range with bits behind its mask
// (CartoDB/cartodb#15649, hashicorp/terraform-provider-google#4032).
func checkRange(field, text string) error {
	if _, err := netip.ParseAddr(text); err == nil {
		return nil
	}
	if p, err := netip.ParsePrefix(text); err != nil || p != p.Masked() {
		return computeInvalid("Invalid value for field '%s': '%s'. Must be a valid CIDR address range.", field, text)
	}
	return nil
}

func checkTag(field, text string) error {
	if !computeName.MatchString(text) {
		return computeInvalid("Invalid value for field '%s': '%s'. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'", field, text)
	}
	return nil
}

// checkAccount has the words of hashicorp/terraform#24713.
func checkAccount(field, text string) error {
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
		return computeInvalid("Invalid value for field '%s': '%s'. Service accounts must be valid RFC 822 email addresses.", field, text)
	}
	return nil
}
