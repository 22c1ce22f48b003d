package gcptest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// kind is the link of a type of disk.
func kind(name string) string { return "zones/us-central1-a/diskTypes/" + name }

func tooMany() map[string]string {
	labels := make(map[string]string)
	for i := range 65 {
		labels[fmt.Sprintf("label-%d", i)] = ""
	}
	return labels
}

func TestRefusedDisks(t *testing.T) {
	s := serve(t, gcptest.Options{})
	for _, test := range []struct {
		words string
		disk  *compute.Disk
	}{
		{"Label key 'Team' violates format constraints.", &compute.Disk{Labels: map[string]string{"Team": "a"}}},
		{"Label key '1st' violates format constraints.", &compute.Disk{Labels: map[string]string{"1st": "a"}}},
		{"Label key '' violates format constraints.", &compute.Disk{Labels: map[string]string{"": "a"}}},
		{"Label value 'head.default' violates format constraints.", &compute.Disk{Labels: map[string]string{"a": "head.default"}}},
		{"The value can be at most 63 characters long.", &compute.Disk{Labels: map[string]string{"a": strings.Repeat("a", 64)}}},
		{"65 exceeds the limit of 64", &compute.Disk{Labels: tooMany()}},
		{"between '10' and '65536'", &compute.Disk{SizeGb: 9}},
		{"between '500' and '65536'", &compute.Disk{Type: kind("pd-extreme"), SizeGb: 499}},
		{"between '2048' and '32768'", &compute.Disk{Type: kind("hyperdisk-throughput"), SizeGb: 2047}},
		{"between 10000 and 120000", &compute.Disk{Type: kind("pd-extreme"), SizeGb: 500, ProvisionedIops: 9999}},
		{"cannot be specified for disk type pd-ssd", &compute.Disk{Type: kind("pd-ssd"), ProvisionedIops: 9999}},
		{"between 3000 and 5000", &compute.Disk{Type: kind("hyperdisk-balanced"), SizeGb: 10, ProvisionedIops: 5001}},
		{"between 2000 and 2000", &compute.Disk{Type: kind("hyperdisk-balanced"), SizeGb: 4, ProvisionedIops: 3000}},
		{"between 140 and 1000", &compute.Disk{Type: kind("hyperdisk-balanced"), SizeGb: 10, ProvisionedIops: 4000, ProvisionedThroughput: 1001}},
		{"between 250 and 2400", &compute.Disk{Type: kind("hyperdisk-balanced"), SizeGb: 1000, ProvisionedIops: 64000, ProvisionedThroughput: 140}},
		{"between 128 and 76800", &compute.Disk{Type: kind("hyperdisk-extreme"), SizeGb: 64, ProvisionedIops: 100}},
		{"between 40 and 360", &compute.Disk{Type: kind("hyperdisk-throughput"), SizeGb: 4096, ProvisionedThroughput: 20}},
		{"between 400 and 6400", &compute.Disk{Type: kind("hyperdisk-ml"), SizeGb: 4, ProvisionedThroughput: 7000}},
		{"Access mode is not supported for disk type pd-ssd", &compute.Disk{Type: kind("pd-ssd"), AccessMode: "READ_ONLY_MANY"}},
		{"Access mode is not supported for disk type hyperdisk-ml", &compute.Disk{Type: kind("hyperdisk-ml"), AccessMode: "READ_WRITE_MANY"}},
		{"Access mode is not supported for disk type hyperdisk-extreme", &compute.Disk{Type: kind("hyperdisk-extreme"), AccessMode: "READ_WRITE_SINGLE"}},
	} {
		test.disk.Name = "d"
		_, err := s.compute.Disks.Insert(project, zone, test.disk).Do()
		s.refused(err, 400, "invalid", test.words)
	}
	_, err := s.compute.RegionDisks.Insert(project, "us-central1", &compute.Disk{Name: "r", SizeGb: 199, ReplicaZones: []string{"zones/us-central1-a", "zones/us-central1-b"}}).Do()
	s.refused(err, 400, "invalid", "between '200' and '65536'")
	_, err = s.compute.RegionDisks.Insert(project, "us-central1", &compute.Disk{Name: "r", ReplicaZones: []string{"zones/us-central1-a", "zones/us-central1-a"}}).Do()
	s.refused(err, 400, "invalid", "two different zones")
	_, err = s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d", Type: kind("hyperdisk-balanced-high-availability")}).Do()
	s.refused(err, 404, "notFound", "diskTypes/hyperdisk-balanced-high-availability")
	if got := s.cloud.Paths(); len(got) != 0 {
		t.Errorf("refused disks are there: %v", got)
	}
	s.done(s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d", Labels: map[string]string{"größe": "groß", "a": ""}}).Do())
}

// TestDiskChanges: what cannot be changed about a disk, and labels that it cannot have.
func TestDiskChanges(t *testing.T) {
	s := serve(t, gcptest.Options{})
	s.done(s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "fast", Type: kind("pd-extreme"), SizeGb: 500}).Do())
	_, err := s.compute.Disks.Update(project, zone, "fast", &compute.Disk{ProvisionedIops: 20000}).Paths("provisionedIops").Do()
	s.refused(err, 400, "invalid", "cannot be changed")
	_, err = s.compute.Disks.Update(project, zone, "fast", &compute.Disk{Description: "x"}).Paths("description").Do()
	s.refused(err, 400, "invalid", "Updating it is not supported")
	s.done(s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d", Type: kind("hyperdisk-balanced"), SizeGb: 10}).Do())
	_, err = s.compute.Disks.Update(project, zone, "d", &compute.Disk{ProvisionedIops: 5001}).Paths("provisionedIops").Do()
	s.refused(err, 400, "invalid", "between 3000 and 5000")
	s.done(s.compute.Disks.Update(project, zone, "d", &compute.Disk{ProvisionedIops: 5000, ProvisionedThroughput: 300}).Paths("provisionedIops", "provisionedThroughput").Do())
	d, err := s.compute.Disks.Get(project, zone, "d").Do()
	if err != nil || d.ProvisionedIops != 5000 || d.ProvisionedThroughput != 300 {
		t.Fatalf("%+v, %v", d, err)
	}
	_, err = s.compute.Disks.SetLabels(project, zone, "d", &compute.ZoneSetLabelsRequest{LabelFingerprint: d.LabelFingerprint, Labels: map[string]string{"a": "B"}}).Do()
	s.refused(err, 400, "invalid", "Invalid value for field 'labels': ''. Label value 'B' violates")
	_, err = s.compute.Snapshots.Insert(project, &compute.Snapshot{Name: "s", SourceDisk: d.SelfLink, Labels: map[string]string{"A": "b"}}).Do()
	s.refused(err, 400, "invalid", "Label key 'A' violates")
	s.done(s.compute.Snapshots.Insert(project, &compute.Snapshot{Name: "s", SourceDisk: d.SelfLink}).Do())
	snapshot, err := s.compute.Snapshots.Get(project, "s").Do()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.compute.Snapshots.SetLabels(project, "s", &compute.GlobalSetLabelsRequest{LabelFingerprint: snapshot.LabelFingerprint, Labels: map[string]string{"A": "b"}}).Do()
	s.refused(err, 400, "invalid", "Label key 'A' violates")
}

// TestNotReady: while an operation is under way on an object, no other one begins.
func TestNotReady(t *testing.T) {
	s := serve(t, gcptest.Options{})
	s.cloud.Slow("compute.*", -1, -1)
	begun := func(_ *compute.Operation, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	disk, snapshot, rule := "projects/stoke-test/zones/us-central1-a/disks/d", "projects/stoke-test/global/snapshots/s", "projects/stoke-test/global/firewalls/f"
	d := func() *compute.Disk { return s.object(disk).(*compute.Disk) }
	busy := func(path string, calls ...func() (*compute.Operation, error)) {
		t.Helper()
		for _, call := range calls {
			_, err := call()
			s.refused(err, 400, "resourceNotReady", "The resource '"+path+"' is not ready")
		}
	}
	onDisk := []func() (*compute.Operation, error){
		func() (*compute.Operation, error) {
			return s.compute.Disks.Resize(project, zone, "d", &compute.DisksResizeRequest{SizeGb: 70}).Do()
		},
		func() (*compute.Operation, error) {
			return s.compute.Disks.Update(project, zone, "d", &compute.Disk{AccessMode: "READ_ONLY_MANY"}).Paths("accessMode").Do()
		},
		func() (*compute.Operation, error) {
			return s.compute.Disks.SetLabels(project, zone, "d", &compute.ZoneSetLabelsRequest{LabelFingerprint: d().LabelFingerprint}).Do()
		},
		func() (*compute.Operation, error) {
			return s.compute.Snapshots.Insert(project, &compute.Snapshot{Name: "s", SourceDisk: disk}).Do()
		},
		func() (*compute.Operation, error) { return s.compute.Disks.Delete(project, zone, "d").Do() },
	}
	begun(s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d", Type: kind("hyperdisk-ml"), SizeGb: 50}).Do())
	busy(disk, onDisk...)
	s.cloud.Settle()
	begun(onDisk[0]())
	busy(disk, onDisk[1:]...)
	s.cloud.Settle()

	begun(onDisk[3]()) // the snapshot
	busy(snapshot, func() (*compute.Operation, error) {
		return s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "e", Type: kind("hyperdisk-ml"), SourceSnapshot: "global/snapshots/s"}).Do()
	}, func() (*compute.Operation, error) {
		return s.compute.Snapshots.SetLabels(project, "s", &compute.GlobalSetLabelsRequest{LabelFingerprint: s.object(snapshot).(*compute.Snapshot).LabelFingerprint}).Do()
	}, func() (*compute.Operation, error) { return s.compute.Snapshots.Delete(project, "s").Do() })
	s.cloud.Settle()

	begun(s.compute.Firewalls.Insert(project, &compute.Firewall{Name: "f", Allowed: []*compute.FirewallAllowed{{IPProtocol: "tcp"}}}).Do())
	onRule := []func() (*compute.Operation, error){
		func() (*compute.Operation, error) {
			return s.compute.Firewalls.Patch(project, "f", &compute.Firewall{Priority: 5}).Do()
		},
		func() (*compute.Operation, error) { return s.compute.Firewalls.Delete(project, "f").Do() },
	}
	busy(rule, onRule...)
	s.cloud.Settle()
	begun(onRule[0]())
	busy(rule, onRule...)
	s.cloud.Settle()
	begun(onRule[1]())
	begun(onDisk[4]())
	busy(disk, onDisk[4])
	s.cloud.Settle()
	if _, err := onDisk[4](); err == nil || !strings.Contains(err.Error(), "was not found") {
		t.Errorf("the disk is deleted twice: %v", err)
	}
}

// object is one of the inventory.
func (s services) object(path string) any {
	s.Helper()
	for _, o := range s.cloud.Inventory() {
		if o.Path == path {
			return o.Value
		}
	}
	s.Fatalf("there is no %s in %v", path, s.cloud.Paths())
	return nil
}

func TestRequestIDs(t *testing.T) {
	s := serve(t, gcptest.Options{})
	insert := func(id string, size int64) error {
		_, err := s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d", SizeGb: size}).RequestId(id).Do()
		return err
	}
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("insert d")).String()
	for _, wrong := range []string{"1", uuid.Nil.String(), "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", "")} {
		s.refused(insert(wrong, 10), 400, "invalid", "Must be a valid UUID other than the zero UUID")
	}
	if err := insert(id, 10); err != nil {
		t.Fatal(err)
	}
	if err := insert(id, 10); err != nil {
		t.Errorf("the same request again: %v", err)
	}
	s.refused(insert(id, 20), 400, "invalid", "used for another request")
	_, err := s.compute.Disks.Delete(project, zone, "d").RequestId(id).Do()
	s.refused(err, 400, "invalid", "used for another request")
}

func TestRefusedFirewalls(t *testing.T) {
	s := serve(t, gcptest.Options{})
	tcp := []*compute.FirewallAllowed{{IPProtocol: "tcp"}}
	allowed := func(protocol string, ports ...string) *compute.Firewall {
		return &compute.Firewall{Allowed: []*compute.FirewallAllowed{{IPProtocol: protocol, Ports: ports}}}
	}
	from := func(ranges ...string) *compute.Firewall {
		return &compute.Firewall{Allowed: tcp, SourceRanges: ranges}
	}
	const account = "a@stoke-test.iam.gserviceaccount.com"
	for _, test := range []struct {
		words string
		rule  *compute.Firewall
	}{
		{"both allowed and denied", &compute.Firewall{Allowed: tcp, Denied: []*compute.FirewallDenied{{IPProtocol: "udp"}}}},
		{"Invalid value for field 'resource.allowed[0].IPProtocol': 'ipv6-icmp'. Must be one of", allowed("ipv6-icmp")},
		{"resource.allowed[0].IPProtocol", allowed("256")},
		{"resource.allowed[0].IPProtocol", allowed("-1")},
		{"resource.allowed[0].IPProtocol", allowed("")},
		{"resource.denied[0].IPProtocol", &compute.Firewall{Denied: []*compute.FirewallDenied{{IPProtocol: "nix"}}}},
		{"Ports may only be specified", allowed("icmp", "8")},
		{"Ports may only be specified", allowed("all", "1-2")},
		{"resource.allowed[0].ports[1]", allowed("tcp", "22", "ssh")},
		{"resource.allowed[0].ports[0]", allowed("tcp", "65536")},
		{"resource.allowed[0].ports[0]", allowed("udp", "200-100")},
		{"resource.allowed[0].ports[0]", allowed("udp", "22,23")},
		{"resource.allowed[0].ports[0]", allowed("udp", "")},
		{"'10.0.0.0/33'. Must be a valid CIDR address range.", from("10.0.0.0/33")},
		{"'office'. Must be a valid CIDR", from("office")},
		{"resource.sourceRanges[1]': '10.0.0.1/8'. Must be a valid CIDR", from("10.0.0.0/8", "10.0.0.1/8")},
		{"IPv4 and IPv6", from("10.0.0.0/8", "2001:db8::/32")},
		{"resource.destinationRanges[0]", &compute.Firewall{Allowed: tcp, DestinationRanges: []string{"x"}}},
		{"cannot be mixed", &compute.Firewall{Allowed: tcp, SourceTags: []string{"a"}, TargetServiceAccounts: []string{account}}},
		{"cannot be mixed", &compute.Firewall{Allowed: tcp, TargetTags: []string{"a"}, SourceServiceAccounts: []string{account}}},
		{"cannot be mixed", &compute.Firewall{Allowed: tcp, TargetTags: []string{"a"}, TargetServiceAccounts: []string{account}}},
		{"resource.targetTags[0]", &compute.Firewall{Allowed: tcp, TargetTags: []string{"GPU"}}},
		{"valid RFC 822", &compute.Firewall{Allowed: tcp, SourceServiceAccounts: []string{"robot"}}},
		{"no source tags", &compute.Firewall{Allowed: tcp, Direction: "EGRESS", SourceTags: []string{"a"}}},
		{"between 0 and 65535", &compute.Firewall{Allowed: tcp, Priority: 65536}},
	} {
		test.rule.Name = "f"
		_, err := s.compute.Firewalls.Insert(project, test.rule).Do()
		s.refused(err, 400, "invalid", test.words)
	}
	var tags []string
	for i := range 31 {
		tags = append(tags, fmt.Sprintf("t%d", i))
	}
	_, err := s.compute.Firewalls.Insert(project, &compute.Firewall{Name: "f", Allowed: tcp, SourceTags: tags}).Do()
	s.refused(err, 413, "fieldSizeTooLarge", "maximum size 30 element(s); actual size 31")

	s.done(s.compute.Firewalls.Insert(project, &compute.Firewall{Name: "f", Direction: "INGRESS", Allowed: []*compute.FirewallAllowed{{IPProtocol: "TCP", Ports: []string{"22", "100-200"}}, {IPProtocol: "58"}}, TargetTags: []string{"gpu"}}).Do())
	if f := s.object("projects/stoke-test/global/firewalls/f").(*compute.Firewall); len(f.SourceRanges) != 1 || f.SourceRanges[0] != "0.0.0.0/0" || f.Allowed[0].IPProtocol != "tcp" {
		t.Errorf("a rule that names nobody is %+v", f)
	}
	_, err = s.compute.Firewalls.Patch(project, "f", &compute.Firewall{SourceServiceAccounts: []string{account}}).Do()
	s.refused(err, 400, "invalid", "cannot be mixed") // with what is there
	s.done(s.compute.Firewalls.Insert(project, &compute.Firewall{Name: "g", Allowed: tcp, SourceTags: []string{"bastion"}}).Do())
	if g := s.object("projects/stoke-test/global/firewalls/g").(*compute.Firewall); len(g.SourceRanges) != 0 {
		t.Errorf("a rule with source tags is also about %v", g.SourceRanges)
	}
}
