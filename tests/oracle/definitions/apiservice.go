// APIServices with their numbers in Protobuf, those of kube-aggregator, and a client for them.
package main

import (
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

var serviceVersion = schema.GroupVersion{Group: "apiregistration.k8s.io", Version: "v1"}

// APIService is one without its status.
type APIService struct {
	meta.TypeMeta
	meta.ObjectMeta
	Spec APIServiceSpec
}

// APIServiceSpec has the service in place of a reference to it.
type APIServiceSpec struct {
	Namespace, Service                    string
	Port                                  int32
	Group, Version                        string
	InsecureSkipTLSVerify                 bool
	CABundle                              []byte
	GroupPriorityMinimum, VersionPriority int32
}

// APIServiceList is a list of them.
type APIServiceList struct {
	meta.TypeMeta
	meta.ListMeta
	Items []APIService
}

func serviceClient(s *suite, codecs *runtime.Scheme) (*rest.RESTClient, error) {
	config := rest.CopyConfig(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorder{next, s.traffic} })
	config.GroupVersion, config.APIPath = &serviceVersion, "/apis"
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf
	config.NegotiatedSerializer = serializer.NewCodecFactory(codecs).WithoutConversion()
	return rest.RESTClientFor(config)
}

// DeepCopyObject is that of runtime.Object.
func (a *APIService) DeepCopyObject() runtime.Object {
	out := *a
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject is that of runtime.Object.
func (l *APIServiceList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = append([]APIService(nil), l.Items...)
	return &out
}

// Reset is that of the serializer.
func (a *APIService) Reset() { *a = APIService{} }

// Reset is that of the serializer.
func (l *APIServiceList) Reset() { *l = APIServiceList{} }

func appendBytes(out []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), value)
}

func appendNumber(out []byte, number protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(out, number, protowire.VarintType), value)
}

// Marshal is that of the serializer.
func (a *APIService) Marshal() ([]byte, error) {
	metadata, err := a.ObjectMeta.Marshal()
	if err != nil {
		return nil, err
	}
	of := a.Spec
	reference := appendBytes(nil, 1, []byte(of.Namespace))
	reference = appendBytes(reference, 2, []byte(of.Service))
	reference = appendNumber(reference, 3, uint64(of.Port))
	spec := appendBytes(nil, 1, reference)
	spec = appendBytes(spec, 2, []byte(of.Group))
	spec = appendBytes(spec, 3, []byte(of.Version))
	spec = appendNumber(spec, 4, protowire.EncodeBool(of.InsecureSkipTLSVerify))
	if of.CABundle != nil {
		spec = appendBytes(spec, 5, of.CABundle)
	}
	spec = appendNumber(spec, 7, uint64(of.GroupPriorityMinimum))
	spec = appendNumber(spec, 8, uint64(of.VersionPriority))
	return appendBytes(appendBytes(nil, 1, metadata), 2, spec), nil
}

// Unmarshal is that of the serializer.
func (a *APIService) Unmarshal(data []byte) error {
	return fields(data, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case 1:
			return a.ObjectMeta.Unmarshal(value)
		case 2:
			return a.Spec.unmarshal(value)
		}
		return nil
	})
}

func (of *APIServiceSpec) unmarshal(data []byte) error {
	return fields(data, func(number protowire.Number, value []byte, amount uint64) error {
		switch number {
		case 1:
			return fields(value, func(number protowire.Number, value []byte, amount uint64) error {
				switch number {
				case 1:
					of.Namespace = string(value)
				case 2:
					of.Service = string(value)
				case 3:
					of.Port = int32(amount)
				}
				return nil
			})
		case 2:
			of.Group = string(value)
		case 3:
			of.Version = string(value)
		case 4:
			of.InsecureSkipTLSVerify = amount == 1
		case 5:
			of.CABundle = append([]byte(nil), value...)
		case 7:
			of.GroupPriorityMinimum = int32(amount)
		case 8:
			of.VersionPriority = int32(amount)
		default:
			return fmt.Errorf("the spec has a field %d", number)
		}
		return nil
	})
}

// Unmarshal is that of the serializer.
func (l *APIServiceList) Unmarshal(data []byte) error {
	return fields(data, func(number protowire.Number, value []byte, _ uint64) error {
		switch number {
		case 1:
			return l.ListMeta.Unmarshal(value)
		case 2:
			var item APIService
			err := item.Unmarshal(value)
			l.Items = append(l.Items, item)
			return err
		}
		return fmt.Errorf("the list has a field %d", number)
	})
}

// fields gives each field of a message to a function: its bytes, or its number.
func fields(data []byte, each func(protowire.Number, []byte, uint64) error) error {
	for len(data) > 0 {
		number, kind, length := protowire.ConsumeTag(data)
		if length < 0 {
			return protowire.ParseError(length)
		}
		data = data[length:]
		var value []byte
		var amount uint64
		switch kind {
		case protowire.BytesType:
			value, length = protowire.ConsumeBytes(data)
		case protowire.VarintType:
			amount, length = protowire.ConsumeVarint(data)
		default:
			return fmt.Errorf("field %d has the wire type %d", number, kind)
		}
		if length < 0 {
			return protowire.ParseError(length)
		}
		if err := each(number, value, amount); err != nil {
			return err
		}
		data = data[length:]
	}
	return nil
}
