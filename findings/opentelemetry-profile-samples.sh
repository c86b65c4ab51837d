#!/usr/bin/env bash
# opentelemetry-proto 1.38.0 and 1.40.0 (PyPI): the value of a sample is the depth of its stack.
#
# A good guess: a format in development changes, and so what one version writes is refused by the next, or has a new
# package (it is v1development in both), or fields that changed have new numbers, as is the custom of protocol buffers.
# Seen: 1.40 reads what 1.38 wrote without an error, and without an unknown field in the sample. The number of its
# locations has become its value, its values have become indexes of attributes, and its first location the stack. So a
# sample of 100003 cycles with three frames is one of 3, and a profile of it looks like a profile.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/packages.sh"
for version in 1.38.0 1.40.0; do
    python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target $version \
        opentelemetry-proto==$version protobuf==6.31.1
done
PYTHONPATH=1.38.0 python3 - <<'SCRIPT'
from opentelemetry.proto.profiles.v1development.profiles_pb2 import Profile, Sample

one = Sample(locations_start_index=4, locations_length=3, value=[100003])
open("profile", "wb").write(Profile(location_indices=range(7), sample=[one]).SerializeToString())
SCRIPT
for version in 1.38.0 1.40.0; do
    PYTHONPATH=$version python3 - $version <<'SCRIPT'
import sys
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.profiles.v1development.profiles_pb2 import Profile

profile = Profile.FromString(open("profile", "rb").read())
(one,) = profile.samples if sys.argv[1] == "1.40.0" else profile.sample
fields = {field.name: list(value) if hasattr(value, "append") else value for field, value in one.ListFields()}
print(sys.argv[1], fields, len(UnknownFieldSet(one)), "unknown")
SCRIPT
done | tee seen
diff seen - <<'SEEN'
1.38.0 {'locations_start_index': 4, 'locations_length': 3, 'value': [100003]} 0 unknown
1.40.0 {'stack_index': 4, 'values': [3], 'attribute_indices': [100003]} 0 unknown
SEEN
