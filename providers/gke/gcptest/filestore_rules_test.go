package gcptest_test

import (
	"strings"
	"testing"

	file "google.golang.org/api/file/v1"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// share is an instance of a tier, as small as that can be.
func share(tier string, change func(*file.Instance)) *file.Instance {
	f := &file.Instance{Tier: tier, FileShares: []*file.FileShareConfig{{Name: "vol", CapacityGb: 2560}}, Networks: []*file.NetworkConfig{{Network: "default"}}}
	if change != nil {
		change(f)
	}
	return f
}

func sized(gib int64) func(*file.Instance) {
	return func(f *file.Instance) { f.FileShares[0].CapacityGb = gib }
}

func exported(all ...*file.NfsExportOptions) func(*file.Instance) {
	return func(f *file.Instance) { f.FileShares[0].NfsExportOptions = all }
}

func reserved(mode, text string) func(*file.Instance) {
	return func(f *file.Instance) { f.Networks[0].ConnectMode, f.Networks[0].ReservedIpRange = mode, text }
}

func TestRefusedFilestores(t *testing.T) {
	s := serve(t, gcptest.Options{})
	create := s.file.Projects.Locations.Instances.Create
	if _, err := create(zoneA, share("BASIC_HDD", reserved("", "10.50.0.0/29"))).InstanceId("there").Do(); err != nil {
		t.Fatal(err)
	}
	var many []*file.NfsExportOptions
	for range 11 {
		many = append(many, &file.NfsExportOptions{})
	}
	for _, test := range []struct {
		words string
		given *file.Instance
	}{
		{"Label key 'Team' violates", share("BASIC_HDD", func(f *file.Instance) { f.Labels = map[string]string{"Team": "a"} })},
		{"65 exceeds the limit of 64", share("BASIC_HDD", func(f *file.Instance) { f.Labels = tooMany() })},
		{"between 1024 and 65434", share("BASIC_HDD", sized(1000))},
		{"between 2560 and 65434", share("BASIC_SSD", sized(2559))},
		{"in steps of 256", share("ZONAL", sized(1030))},
		{"in steps of 2560", share("ZONAL", sized(10496))},
		{"in steps of 2560", share("HIGH_SCALE_SSD", sized(1024))},
		{"cannot be created in location", share("ENTERPRISE", sized(1024))},
		{"Protocol NFS_V4_1 is not supported", share("BASIC_HDD", func(f *file.Instance) { f.Protocol = "NFS_V4_1" })},
		{"Invalid file share name", share("BASIC_HDD", func(f *file.Instance) { f.FileShares[0].Name = "my-share" })},
		{"must be 1-16", share("BASIC_HDD", func(f *file.Instance) { f.FileShares[0].Name = strings.Repeat("a", 17) })},
		{"must be 1-63", share("ZONAL", func(f *file.Instance) { f.FileShares[0].Name = strings.Repeat("a", 64) })},
		{"at most 10", share("BASIC_HDD", exported(many...))},
		{"squash_mode of ROOT_SQUASH", share("BASIC_HDD", exported(&file.NfsExportOptions{AnonUid: 5}))},
		{"Invalid IP range", share("BASIC_HDD", exported(&file.NfsExportOptions{IpRanges: []string{"10.0.0.1/8"}}))},
		{"overlaps", share("BASIC_HDD", exported(&file.NfsExportOptions{IpRanges: []string{"10.0.0.0/8"}}, &file.NfsExportOptions{IpRanges: []string{"10.1.1.1"}}))},
		{"2048", share("BASIC_HDD", func(f *file.Instance) { f.Description = strings.Repeat("a", 2049) })},
		{"Invalid reserved_ip_range", share("BASIC_HDD", reserved("", "10.0.0.0/24"))},
		{"Invalid reserved_ip_range", share("HIGH_SCALE_SSD", func(f *file.Instance) { sized(10240)(f); reserved("", "10.0.0.0/29")(f) })},
		{"Invalid reserved_ip_range", share("BASIC_HDD", reserved("", "8.8.8.0/29"))},
		{"Invalid reserved_ip_range", share("BASIC_HDD", reserved("", "mine"))},
		{"is the name of an allocated range", share("BASIC_HDD", reserved("PRIVATE_SERVICE_ACCESS", "10.0.0.0/29"))},
		{"overlaps the one of instance", share("BASIC_HDD", reserved("", "10.50.0.0/29"))},
	} {
		_, err := create(zoneA, test.given).InstanceId("f").Do()
		s.refused(err, 400, "badRequest", test.words)
	}
	s.cloud.Settle()
	if got := s.cloud.Paths(); len(got) != 1 {
		t.Errorf("refused instances are there: %v", got)
	}
	for id, given := range map[string]*file.Instance{
		"small": share("ZONAL", sized(9984)), "large": share("ZONAL", sized(12800)), "psa": share("BASIC_HDD", reserved("PRIVATE_SERVICE_ACCESS", "mine")),
		"root": share("BASIC_HDD", exported(&file.NfsExportOptions{IpRanges: []string{"10.0.0.0/8"}, SquashMode: "ROOT_SQUASH", AnonUid: 5}, &file.NfsExportOptions{IpRanges: []string{"192.168.0.7"}})),
	} {
		if _, err := create(zoneA, given).InstanceId(id).Do(); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestFilestoreChanges(t *testing.T) {
	s := serve(t, gcptest.Options{})
	s.cloud.Slow("file.*", -1, -1)
	at := s.file.Projects.Locations.Instances
	name := zoneA + "/instances/f"
	patch := func(mask string, change func(*file.Instance)) error {
		_, err := at.Patch(name, share("", change)).UpdateMask(mask).Do()
		return err
	}
	if _, err := at.Create(zoneA, share("ZONAL", nil)).InstanceId("f").Do(); err != nil {
		t.Fatal(err)
	}
	s.refused(patch("labels", func(f *file.Instance) { f.Labels = map[string]string{"a": "b"} }), 409, "aborted", "unable to queue the operation")
	_, err := at.Delete(name).Do()
	s.refused(err, 409, "aborted", "unable to queue the operation")
	s.cloud.Settle()
	s.refused(patch("labels", func(f *file.Instance) { f.Labels = map[string]string{"A": "b"} }), 400, "badRequest", "Label key 'A' violates")
	s.refused(patch("file_shares", sized(10240)), 400, "badRequest", "between 1024 and 9984 GiB in steps of 256") // the other band
	s.refused(patch("file_shares", exported(&file.NfsExportOptions{AnonGid: 5})), 400, "badRequest", "ROOT_SQUASH")
	s.refused(patch("network", nil), 400, "badRequest", "cannot be changed")
	if err := patch("file_shares", sized(1024)); err != nil {
		t.Error(err)
	}
	s.cloud.Settle()
	if err := patch("deletion_protection_enabled", func(f *file.Instance) { f.DeletionProtectionEnabled = true }); err != nil {
		t.Error(err)
	}
	s.cloud.Settle()
	_, err = at.Delete(name).Do()
	s.refused(err, 400, "failedPrecondition", `instance "`+name+`" is protected`)
}

// TestFailedFilestoreStays: one that could not be made is there, in error, and can
// only be deleted.
func TestFailedFilestoreStays(t *testing.T) {
	s := serve(t, gcptest.Options{})
	at := s.file.Projects.Locations
	s.cloud.Fail(gcptest.Fault{Method: "file.*.create", When: gcptest.Halfway, Code: codes.Internal, Message: "System limit for internal resources has been reached."})
	o, err := at.Instances.Create(zoneA, share("BASIC_HDD", nil)).InstanceId("f").Do()
	for i := 0; err == nil && !o.Done && i < 50; i++ {
		o, err = at.Operations.Get(o.Name).Do()
	}
	if err != nil || o.Error == nil {
		t.Fatalf("%+v, %v", o, err)
	}
	name := zoneA + "/instances/f"
	if f, err := at.Instances.Get(name).Do(); err != nil || f.State != "ERROR" || !strings.Contains(f.StatusMessage, "System limit") {
		t.Errorf("%+v, %v", f, err)
	}
	_, err = at.Instances.Create(zoneA, share("BASIC_HDD", nil)).InstanceId("f").Do()
	s.refused(err, 409, "alreadyExists", "already exists")
	_, err = at.Instances.Patch(name, share("", sized(3000))).UpdateMask("file_shares").Do()
	s.refused(err, 400, "failedPrecondition", "ERROR")
	if _, err := at.Instances.Delete(name).Do(); err != nil {
		t.Error(err)
	}
	s.cloud.Settle()
	if got := s.cloud.Paths(); len(got) != 0 {
		t.Errorf("still there: %v", got)
	}
}
