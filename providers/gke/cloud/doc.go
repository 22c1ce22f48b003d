// Package cloud speaks to Google Cloud for the provider gke: clients of the
// services container, compute and file; the credentials they use; what is tried
// again and what is not; operations, waited for and found again; errors with
// their reason, request id and what to do; the marks by which an interrupted
// apply knows what it made. It knows no resource. Open is the way in.
package cloud
