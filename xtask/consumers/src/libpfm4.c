/* Prints how libpfm4 encodes each event with each of its unit masks alone, for every processor that it knows:
 * PMU, event, unit mask or nothing, event select register. Events that need a second register are left out. */

#include <perfmon/pfmlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print(const char *pmu, const char *event, const char *umask)
{
	char text[512];
	pfm_pmu_encode_arg_t encoded;

	snprintf(text, sizeof(text), "%s::%s%s%s", pmu, event, umask[0] ? ":" : "", umask);
	memset(&encoded, 0, sizeof(encoded));
	encoded.size = sizeof(encoded);
	if (pfm_get_os_event_encoding(text, PFM_PLM0 | PFM_PLM3, PFM_OS_NONE, &encoded) == PFM_SUCCESS && encoded.count == 1)
		printf("%s,%s,%s,%llx\n", pmu, event, umask, (unsigned long long)encoded.codes[0]);
	free(encoded.codes);
}

static void print_event(const char *pmu, int index)
{
	pfm_event_info_t event;
	int number;

	memset(&event, 0, sizeof(event));
	event.size = sizeof(event);
	if (pfm_get_event_info(index, PFM_OS_NONE, &event) != PFM_SUCCESS)
		return;
	print(pmu, event.name, "");
	for (number = 0; number < event.nattrs; number++) {
		pfm_event_attr_info_t attribute;

		memset(&attribute, 0, sizeof(attribute));
		attribute.size = sizeof(attribute);
		if (pfm_get_event_attr_info(index, number, PFM_OS_NONE, &attribute) == PFM_SUCCESS &&
		    attribute.type == PFM_ATTR_UMASK)
			print(pmu, event.name, attribute.name);
	}
}

int main(void)
{
	int number;

	/* Without this, libpfm4 encodes events of this machine's processor alone. */
	setenv("LIBPFM_ENCODE_INACTIVE", "1", 1);
	if (pfm_initialize() != PFM_SUCCESS) {
		fprintf(stderr, "pfm_initialize fails\n");
		return 1;
	}
	for (number = 0; number < PFM_PMU_MAX; number++) {
		pfm_pmu_info_t pmu;
		int index;

		memset(&pmu, 0, sizeof(pmu));
		pmu.size = sizeof(pmu);
		if (pfm_get_pmu_info(number, &pmu) != PFM_SUCCESS || pmu.type != PFM_PMU_TYPE_CORE)
			continue;
		for (index = pmu.first_event; index != -1; index = pfm_get_event_next(index))
			print_event(pmu.name, index);
	}
	return 0;
}
