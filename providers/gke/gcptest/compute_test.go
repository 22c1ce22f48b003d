package gcptest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	serviceusage "google.golang.org/api/serviceusage/v1"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

const (
	project = "stoke-test"
	zone    = "us-central1-a"
)

// services are a double and Google's clients of its REST APIs.
type services struct {
	*testing.T
	cloud   *gcptest.Cloud
	compute *compute.Service
	file    *file.Service
	usage   *serviceusage.Service
}

func serve(t *testing.T, o gcptest.Options) services {
	t.Helper()
	s := services{T: t, cloud: gcptest.New(t, o)}
	at := func(path string) []option.ClientOption {
		return []option.ClientOption{option.WithEndpoint(s.cloud.REST() + path), option.WithoutAuthentication()}
	}
	var failed [3]error
	s.compute, failed[0] = compute.NewService(t.Context(), at("/compute/v1/")...)
	s.file, failed[1] = file.NewService(t.Context(), at("/file/")...)
	s.usage, failed[2] = serviceusage.NewService(t.Context(), at("/serviceusage/")...)
	if err := errors.Join(failed[:]...); err != nil {
		t.Fatal(err)
	}
	return s
}

// ended waits for an operation of a zone or, without one, of the project.
func (s services) ended(o *compute.Operation, err error) *compute.Operation {
	s.Helper()
	for i := 0; err == nil && o.Status != "DONE" && i < 50; i++ {
		switch {
		case o.Zone != "":
			o, err = s.compute.ZoneOperations.Wait(project, zone, o.Name).Do()
		case o.Region != "":
			o, err = s.compute.RegionOperations.Wait(project, "us-central1", o.Name).Do()
		default:
			o, err = s.compute.GlobalOperations.Get(project, o.Name).Do()
		}
	}
	if err != nil {
		s.Fatal(err)
	}
	return o
}

func (s services) done(o *compute.Operation, err error) {
	s.Helper()
	if o := s.ended(o, err); o.Error != nil {
		s.Fatalf("operation ends with %v", o.Error.Errors[0])
	}
}

// refused checks the HTTP status, the reason and the words of an error.
func (s services) refused(err error, code int, reason, words string) {
	s.Helper()
	var e *googleapi.Error
	if !errors.As(err, &e) || e.Code != code || len(e.Errors) == 0 || e.Errors[0].Reason != reason || !strings.Contains(e.Message, words) {
		s.Errorf("got %v, want %d %s with %q", err, code, reason, words)
	}
}

func TestDisk(t *testing.T) {
	s := serve(t, gcptest.Options{})
	s.done(s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d", SizeGb: 50, Type: "zones/us-central1-a/diskTypes/hyperdisk-ml", Labels: map[string]string{"a": "b"}}).Do())
	_, err := s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d"}).Do()
	s.refused(err, 409, "alreadyExists", "The resource 'projects/stoke-test/zones/us-central1-a/disks/d' already exists")
	d, err := s.compute.Disks.Get(project, zone, "d").Do()
	if err != nil || d.Status != "READY" || d.AccessMode != "READ_WRITE_SINGLE" || d.ProvisionedThroughput != 1200 {
		t.Fatalf("the disk: %+v, %v", d, err)
	}
	s.done(s.compute.Disks.Resize(project, zone, "d", &compute.DisksResizeRequest{SizeGb: 60}).Do())
	_, err = s.compute.Disks.Resize(project, zone, "d", &compute.DisksResizeRequest{SizeGb: 50}).Do()
	s.refused(err, 400, "invalid", "Invalid value for field 'sizeGb': '50'. New disk size '50' GiB must be larger than existing size '60' GiB.")
	s.done(s.compute.Disks.SetLabels(project, zone, "d", &compute.ZoneSetLabelsRequest{LabelFingerprint: d.LabelFingerprint, Labels: map[string]string{"a": "c"}}).Do())
	_, err = s.compute.Disks.SetLabels(project, zone, "d", &compute.ZoneSetLabelsRequest{LabelFingerprint: d.LabelFingerprint}).Do()
	s.refused(err, 412, "conditionNotMet", "fingerprint")
	s.done(s.compute.Disks.Update(project, zone, "d", &compute.Disk{AccessMode: "READ_ONLY_MANY"}).Paths("accessMode").Do())
	_, err = s.compute.Disks.Update(project, zone, "d", &compute.Disk{ProvisionedIops: 5}).Paths("provisionedIops").Do()
	s.refused(err, 400, "invalid", "cannot be specified for disk type hyperdisk-ml")

	path := "projects/stoke-test/zones/us-central1-a/disks/d"
	if err := s.cloud.Attach(path, "node", true); err != nil {
		t.Fatal(err)
	}
	_, err = s.compute.Disks.Delete(project, zone, "d").Do()
	s.refused(err, 400, "resourceInUseByAnotherResource", "The disk resource '"+path+"' is already being used by 'projects/stoke-test/zones/us-central1-a/instances/node'")
	if err := s.cloud.Attach(path, "node", false); err != nil {
		t.Fatal(err)
	}
	s.done(s.compute.Snapshots.Insert(project, &compute.Snapshot{Name: "s", SourceDisk: d.SelfLink}).Do())
	s.done(s.compute.Disks.Delete(project, zone, "d").Do())
	_, err = s.compute.Disks.Get(project, zone, "d").Do()
	s.refused(err, 404, "notFound", "The resource '"+path+"' was not found")
	s.done(s.compute.RegionDisks.Insert(project, "us-central1", &compute.Disk{
		Name: "r", Type: "regions/us-central1/diskTypes/pd-ssd", SourceSnapshot: "global/snapshots/s", ReplicaZones: []string{"zones/us-central1-a", "zones/us-central1-b"},
	}).Do())
	want := []string{"projects/stoke-test/global/snapshots/s", "projects/stoke-test/regions/us-central1/disks/r"}
	if diff := cmp.Diff(want, s.cloud.Paths()); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
	if r := s.cloud.Inventory()[1].Value.(*compute.Disk); r.SizeGb != 60 {
		t.Errorf("the disk of the snapshot has %d GiB, want 60", r.SizeGb)
	}
}

func TestSameRequestOnce(t *testing.T) {
	s := serve(t, gcptest.Options{})
	id := uuid.NewString()
	s.cloud.Fail(gcptest.Fault{Method: "compute.disks.insert", When: gcptest.After})
	_, err := s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d"}).RequestId(id).Do()
	s.refused(err, 503, "backendError", "unavailable")
	first, err := s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d"}).RequestId(id).Do()
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d"}).RequestId(id).Do()
	if err != nil || again.Name != first.Name {
		t.Fatalf("%v %v, want the operation %s again", again, err, first.Name)
	}
	s.done(again, nil)
	_, err = s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "e"}).RequestId(id).Do()
	s.refused(err, 400, "invalid", "used for another request")
	if got := len(s.cloud.Inventory()); got != 1 {
		t.Errorf("%d disks, want one", got)
	}
}

// TestDoneWithError: an operation that failed is DONE, and has no HTTP status.
func TestDoneWithError(t *testing.T) {
	s := serve(t, gcptest.Options{})
	s.cloud.Fail(gcptest.Fault{Method: "compute.disks.insert", When: gcptest.Halfway, Code: codes.ResourceExhausted, Message: "none left"})
	o := s.ended(s.compute.Disks.Insert(project, zone, &compute.Disk{Name: "d"}).Do())
	if o.Error == nil || o.Error.Errors[0].Message != "none left" || o.HttpErrorStatusCode != 0 {
		t.Errorf("the operation: %+v", o)
	}
	if got := len(s.cloud.Inventory()); got != 0 {
		t.Errorf("%d disks, want none", got)
	}
}

func TestFirewall(t *testing.T) {
	s := serve(t, gcptest.Options{})
	rule := &compute.Firewall{Name: "f", Allowed: []*compute.FirewallAllowed{{IPProtocol: "tcp", Ports: []string{"22"}}}, Description: "mark"}
	s.done(s.compute.Firewalls.Insert(project, rule).Do())
	f, err := s.compute.Firewalls.Get(project, "f").Do()
	if err != nil || f.Priority != 1000 || f.Direction != "INGRESS" || !slices.Equal(f.SourceRanges, []string{"0.0.0.0/0"}) || !strings.HasSuffix(f.Network, "/global/networks/default") {
		t.Fatalf("the rule: %+v, %v", f, err)
	}
	s.done(s.compute.Firewalls.Patch(project, "f", &compute.Firewall{SourceRanges: []string{"10.0.0.0/8"}, Priority: 0, ForceSendFields: []string{"Priority"}}).Do())
	if f, err = s.compute.Firewalls.Get(project, "f").Do(); err != nil || f.Priority != 0 || f.Description != "mark" || f.SourceRanges[0] != "10.0.0.0/8" {
		t.Errorf("the rule: %+v, %v", f, err)
	}
	_, err = s.compute.Firewalls.Patch(project, "f", &compute.Firewall{Direction: "EGRESS"}).Do()
	s.refused(err, 400, "invalid", "cannot be changed")
	_, err = s.compute.Firewalls.Insert(project, &compute.Firewall{Name: "g"}).Do()
	s.refused(err, 400, "invalid", "at least one allowed or denied")
	s.done(s.compute.Firewalls.Delete(project, "f").Do())
	_, err = s.compute.Firewalls.Delete(project, "f").Do()
	s.refused(err, 404, "notFound", "was not found")
}

func TestFilestore(t *testing.T) {
	s := serve(t, gcptest.Options{})
	at := s.file.Projects.Locations
	wait := func(o *file.Operation, err error) {
		t.Helper()
		for i := 0; err == nil && !o.Done && i < 50; i++ {
			o, err = at.Operations.Get(o.Name).Do()
		}
		if err != nil || o.Error != nil {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	declared := &file.Instance{Tier: "BASIC_HDD", FileShares: []*file.FileShareConfig{{Name: "share", CapacityGb: 2048}}, Networks: []*file.NetworkConfig{{Network: "default"}}}
	wait(at.Instances.Create(zoneA, declared).InstanceId("f").Do())
	name := zoneA + "/instances/f"
	f, err := at.Instances.Get(name).Do()
	if err != nil || f.State != "READY" || len(f.Networks[0].IpAddresses) != 1 || f.Protocol != "NFS_V3" {
		t.Fatalf("the instance: %+v, %v", f, err)
	}
	_, err = at.Instances.Patch(name, &file.Instance{FileShares: []*file.FileShareConfig{{Name: "share", CapacityGb: 1024}}}).UpdateMask("file_shares").Do()
	s.refused(err, 400, "badRequest", "cannot be reduced from 2048 to 1024")
	wait(at.Instances.Patch(name, &file.Instance{Labels: map[string]string{"a": "b"}}).UpdateMask("labels").Do())
	_, err = at.Instances.Patch(name, &file.Instance{Tier: "ZONAL"}).UpdateMask("tier").Do()
	s.refused(err, 400, "badRequest", "cannot be changed")
	_, err = at.Instances.Create(zoneA, declared).InstanceId("f").Do()
	s.refused(err, 409, "alreadyExists", "already exists")
	wait(at.Instances.Delete(name).Do())
	_, err = at.Instances.Get(name).Do()
	s.refused(err, 404, "notFound", "was not found")
}

func TestServices(t *testing.T) {
	s := serve(t, gcptest.Options{Services: []string{"container.googleapis.com"}})
	_, err := s.compute.Zones.List(project).Do()
	s.refused(err, 403, "forbidden", "Compute Engine API has not been used in project 123456789012 before or it is disabled.")
	if !strings.Contains(err.Error(), "SERVICE_DISABLED") {
		t.Errorf("no reason in %v", err)
	}
	names := []string{"projects/stoke-test/services/container.googleapis.com", "projects/stoke-test/services/compute.googleapis.com"}
	states := func() string {
		t.Helper()
		got, err := s.usage.Services.BatchGet("projects/stoke-test").Names(names...).Do()
		if err != nil {
			t.Fatal(err)
		}
		return got.Services[0].State + " " + got.Services[1].State
	}
	if got := states(); got != "ENABLED DISABLED" {
		t.Errorf("states: %s", got)
	}
	o, err := s.usage.Services.Enable(names[1], &serviceusage.EnableServiceRequest{}).Do()
	for i := 0; err == nil && !o.Done && i < 50; i++ {
		o, err = s.usage.Operations.Get(o.Name).Do()
	}
	if err != nil || states() != "ENABLED ENABLED" {
		t.Errorf("%v, states: %s", err, states())
	}
	if _, err := s.compute.Zones.List(project).Do(); err != nil {
		t.Error(err)
	}
}

func TestCatalogue(t *testing.T) {
	s := serve(t, gcptest.Options{
		PageSize: 2, HostProjects: []string{"host"}, Networks: []string{"lab"},
		Quota:        map[string]map[string]float64{"us-central1": {"NVIDIA_A100_GPUS": 16}},
		Routers:      []*compute.Router{{Name: "nat", Region: "us-central1", Network: "lab", Nats: []*compute.RouterNat{{Name: "n"}}}},
		Reservations: []*compute.Reservation{{Name: "r", Zone: zone}},
	})
	var zones []string
	if err := s.compute.Zones.List(project).Pages(t.Context(), func(page *compute.ZoneList) error {
		for _, one := range page.Items {
			zones = append(zones, one.Name)
		}
		return nil
	}); err != nil || len(zones) != 6 {
		t.Errorf("zones %v, %v", zones, err)
	}
	if got := s.cloud.Counts()["compute.zones.list"]; got != 3 {
		t.Errorf("%d pages, want 3", got)
	}
	if _, err := s.compute.AcceleratorTypes.Get(project, "us-central1-b", "nvidia-h100-80gb").Do(); err == nil {
		t.Error("us-central1-b has no H100")
	}
	all, err := s.compute.AcceleratorTypes.AggregatedList(project).Do()
	if err != nil || len(all.Items["zones/europe-west4-b"].AcceleratorTypes) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	m, err := s.compute.MachineTypes.Get(project, zone, "a2-highgpu-1g").Do()
	if err != nil || m.Accelerators[0].GuestAcceleratorType != "nvidia-tesla-a100" || m.GuestCpus != 12 {
		t.Errorf("%+v, %v", m, err)
	}
	sub, err := s.compute.Subnetworks.Get("host", "us-central1", "lab").Do()
	if err != nil || !strings.HasSuffix(sub.Network, "/projects/host/global/networks/lab") {
		t.Errorf("%+v, %v", sub, err)
	}
	routers, err := s.compute.Routers.List(project, "us-central1").Do()
	if err != nil || len(routers.Items) != 1 || len(routers.Items[0].Nats) != 1 {
		t.Errorf("%+v, %v", routers, err)
	}
	r, err := s.compute.Reservations.Get(project, zone, "r").Do()
	if err != nil || r.Status != "READY" {
		t.Errorf("%+v, %v", r, err)
	}

	w := world{T: t, cloud: s.cloud, client: dial(t, s.cloud, "grpc")}
	w.cluster(zoneA)
	w.done(w.pool(zoneA, &containerpb.NodePool{Name: "p", InitialNodeCount: 2, Config: gpus(1)}))
	groups, err := s.compute.InstanceGroupManagers.List(project, zone).Filter(`name eq gke-c-p-.*`).Do()
	if err != nil || len(groups.Items) != 1 || groups.Items[0].TargetSize != 2 || groups.Items[0].SelfLink != w.get(cluster + "/nodePools/p").GetInstanceGroupUrls()[0] {
		t.Errorf("%+v, %v", groups, err)
	}
	region, err := s.compute.Regions.Get(project, "us-central1").Do()
	if err != nil || region.Quotas[0].Limit != 16 || region.Quotas[0].Usage != 2 {
		t.Errorf("%+v, %v", region, err)
	}
}
