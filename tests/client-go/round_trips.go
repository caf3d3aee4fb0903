package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"

	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// roundTrips reads all documents of OpenAPI by the types of kube-openapi, and writes them again: nothing is lost, and nothing changes.
func roundTrips(ctx context.Context, s *suite, _ string) error {
	document := func(uri string) ([]byte, error) {
		request := s.discovery.RESTClient().Get().RequestURI(uri).SetHeader("Accept", "application/json")
		return request.Do(ctx).Raw()
	}
	index, err := document("/openapi/v3")
	if err != nil {
		return err
	}
	var listed struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(index, &listed); err != nil {
		return err
	}
	if len(listed.Paths) < 2 {
		return fmt.Errorf("the index has %d documents", len(listed.Paths))
	}
	for path, at := range listed.Paths {
		text, err := document(at.ServerRelativeURL)
		if err == nil {
			err = unchanged[spec3.OpenAPI](text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	text, err := document("/openapi/v2")
	if err == nil {
		err = unchanged[spec.Swagger](text)
	}
	if err != nil {
		return fmt.Errorf("v2: %w", err)
	}
	return nil
}

// unchanged reads a document as a type, and compares what the type writes.
func unchanged[T any](document []byte) error {
	first, second := new(T), new(T)
	if err := json.Unmarshal(document, first); err != nil {
		return err
	}
	written, err := json.Marshal(first)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(written, second); err != nil {
		return err
	}
	if !reflect.DeepEqual(first, second) {
		return fmt.Errorf("what is written is read otherwise")
	}
	var before, after any
	if err := json.Unmarshal(document, &before); err != nil {
		return err
	}
	if err := json.Unmarshal(written, &after); err != nil {
		return err
	}
	return difference("", before, after)
}

// difference tells the first place at which two documents differ.
func difference(at string, before, after any) error {
	if reflect.DeepEqual(before, after) {
		return nil
	}
	was, isObject := before.(map[string]any)
	is, staysObject := after.(map[string]any)
	if !isObject || !staysObject {
		return fmt.Errorf("%s is %v, and was %v", at, after, before)
	}
	names := []string{}
	for name := range was {
		names = append(names, name)
	}
	for name := range is {
		if _, known := was[name]; !known {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		if err := difference(at+"/"+name, was[name], is[name]); err != nil {
			return err
		}
	}
	return nil
}
