from __future__ import annotations

from dataclasses import replace

import pytest

from casemate.doctor import nvidia_smi_report
from casemate.errors import UsageError

MIB = 1 << 20
XML = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
 <driver_version>580.1</driver_version>
 <gpu id="00000000:C1:00.0">
  <product_name>Made-up card</product_name>
  <uuid>GPU-1</uuid>
  <persistence_mode>Disabled</persistence_mode>
  <mig_mode><current_mig>{mig}</current_mig></mig_mode>
  <mig_devices>{slices}</mig_devices>
  <gpu_virtualization_mode><virtualization_mode>{virtual}</virtualization_mode></gpu_virtualization_mode>
  <pci><pci_device_id>233510DE</pci_device_id>
   <pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>1</current_link_gen></pcie_gen>
   <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
   </pci_gpu_link_info></pci>
  <clocks_event_reasons>
   <clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
   <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
   <clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
   <clocks_event_reason_display_clocks_setting>Active</clocks_event_reason_display_clocks_setting>
  </clocks_event_reasons>
  <fb_memory_usage><total>{memory}</total><used>5 MiB</used></fb_memory_usage>
  <compute_mode>Exclusive_Process</compute_mode>
  <ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
  <ecc_errors><volatile><sram_correctable>9</sram_correctable><sram_uncorrectable_parity>1</sram_uncorrectable_parity>
   <dram_uncorrectable>2</dram_uncorrectable></volatile><aggregate><dram_uncorrectable>77</dram_uncorrectable></aggregate>
  </ecc_errors>
  <remapped_rows><remapped_row_pending>Yes</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>
  </remapped_rows>
  <temperature><gpu_temp>34 C</gpu_temp><gpu_temp_tlimit>53 C</gpu_temp_tlimit>
   <gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold></temperature>
  <gpu_power_readings><instant_power_draw>77.15 W</instant_power_draw>
   <current_power_limit>350.00 W</current_power_limit><default_power_limit>700.00 W</default_power_limit>
  </gpu_power_readings>
  <clocks><sm_clock>375 MHz</sm_clock></clocks>
  <max_clocks><sm_clock>1980 MHz</sm_clock><mem_clock>3201 MHz</mem_clock></max_clocks>
  <fabric><state>{fabric}</state><status>{status}</status></fabric>
  <processes><process_info><pid>41</pid><used_memory>7 MiB</used_memory></process_info>
   <process_info><pid>42</pid><used_memory>N/A</used_memory></process_info></processes>
 </gpu>
</nvidia_smi_log>
"""
TEXT = """\
==============NVSMI LOG==============

Driver Version                            : 580.1

Attached GPUs                             : 1
GPU 00000000:C1:00.0
    Product Name                          : Made-up card
    GPU UUID                              : GPU-1
    Persistence Mode                      : Disabled
    MIG Mode
        Current                           : Disabled
        Pending                           : Enabled
    GPU Virtualization Mode
        Virtualization Mode               : None
    PCI
        Device Id                         : 0x233510DE
        Bus Id                            : 00000000:C1:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
    Clocks Event Reasons
        Idle                              : Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
        Display Clock Setting             : Active
    FB Memory Usage
        Total                             : 97871 MiB
        Used                              : 5 MiB
    Compute Mode                          : Exclusive_Process
    ECC Mode
        Current                           : Enabled
    ECC Errors
        Volatile
            SRAM Correctable              : 9
            SRAM Uncorrectable Parity     : 1
            DRAM Uncorrectable            : 2
        Aggregate
            DRAM Uncorrectable            : 77
    Remapped Rows
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Current Temp                  : 34 C
        GPU T.Limit Temp                  : 53 C
        GPU Slowdown T.Limit Temp         : -2 C
    GPU Power Readings
        Instantaneous Power Draw          : 77.15 W
        Current Power Limit               : 350.00 W
        Default Power Limit               : 700.00 W
    Clocks
        SM                                : 375 MHz
    Max Clocks
        SM                                : 1980 MHz
        Memory                            : 3201 MHz
    Fabric
        State                             : Completed
        Status                            : Success
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 41
            Type                          : C
            Used GPU Memory               : 7 MiB
        Process ID                        : 42
            Used GPU Memory               : N/A
"""
PLAIN = {
    "mig": "Disabled",
    "slices": "None",
    "virtual": "None",
    "memory": "97871 MiB",
    "fabric": "Completed",
    "status": "Success",
}
PART = """<mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id>
<device_attributes><shared><multiprocessor_count>42</multiprocessor_count></shared></device_attributes>
<fb_memory_usage><total>20096 MiB</total><used>11 MiB</used></fb_memory_usage></mig_device>"""


def xml(**changes: str) -> str:
    return XML.format(**PLAIN | changes)


def test_a_report_in_xml_is_read_whole() -> None:
    (card,) = nvidia_smi_report.cards(xml())
    assert (card.name, card.uuid, card.bus, card.device_id) == ("Made-up card", "GPU-1", "00000000:c1:00.0", 0x2335)
    assert (card.memory_total_bytes, card.memory_used_bytes) == (97871 * MIB, 5 * MIB)
    assert (card.pcie_generation, card.pcie_generation_max, card.pcie_width, card.pcie_width_max) == (1, 5, 8, 16)
    assert (card.ecc_enabled, card.ecc_uncorrected, card.remapped_rows_pending) == (True, 3, True)
    assert (card.power_w, card.power_limit_w, card.power_limit_default_w) == (77.15, 350, 700)
    assert (card.temperature_c, card.temperature_slowdown_c) == (34, 34 + 53 + 2)
    assert card.throttle == ("sw_power_cap", "display_clock_setting")
    assert (card.sm_clock_hz, card.sm_clock_max_hz, card.memory_clock_hz) == (375 * 10**6, 1980 * 10**6, 3201 * 10**6)
    assert (card.persistence, card.compute_mode, card.fabric_state) == (False, "exclusive_process", "completed")
    assert card.processes == ((41, 7 * MIB), (42, None))
    assert (card.mig_parent, card.unified, card.unknown) == (False, False, ())


def test_the_same_report_as_text_says_the_same() -> None:
    assert nvidia_smi_report.cards(TEXT) == nvidia_smi_report.cards(xml())


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"virtual": "VGPU"}, "virtual", "vgpu"),
        ({"virtual": "Host VGPU"}, "virtual", "host_vgpu"),
        ({"virtual": "Pass-Through"}, "passthrough", True),
        ({"fabric": "In Progress", "status": "N/A"}, "fabric_state", "in progress"),
        ({"status": "Insufficient Resources"}, "fabric_state", "failed: Insufficient Resources"),
        ({"memory": "N/A"}, "unified", True),
        ({"memory": "[Insufficient Permissions]"}, "unified", False),
        ({"memory": "N/A"}, "memory_total_bytes", None),
    ],
)
def test_a_single_word_of_the_report_decides_its_fact(changes: dict[str, str], field: str, value: object) -> None:
    (card,) = nvidia_smi_report.cards(xml(**changes))
    assert getattr(card, field) == value


def test_a_fabric_that_the_card_does_not_have_is_not_told() -> None:
    (card,) = nvidia_smi_report.cards(xml(fabric="N/A", status="N/A"))
    assert card.fabric_state == ""
    assert ("fabric_state", "N/A") in card.unknown


def test_slices_stand_behind_their_card_with_what_the_report_has_of_them() -> None:
    parent, part = nvidia_smi_report.cards(xml(mig="Enabled", slices=PART))
    assert (parent.mig_parent, parent.unified) == (True, False)
    assert (part.mig, part.index, part.memory_total_bytes, part.multiprocessors) == ("unknown", 0, 20096 * MIB, 42)
    assert (part.mig_parent, part.uuid, part.processes) == (False, "", ())


def test_facts_that_an_old_release_does_not_print_are_unknown() -> None:
    head, _, _ = TEXT.partition("    PCI\n")
    (card,) = nvidia_smi_report.cards(head)
    assert (card.name, card.pcie_width, card.ecc_enabled, card.throttle) == ("Made-up card", None, None, ())
    reasons = dict(card.unknown)
    assert reasons["pcie_width"] == reasons["throttle"] == "nvidia-smi does not print it"
    assert not card.unified, "a total that is not printed is not the same as one that is not there"


def test_a_report_without_cards_has_none() -> None:
    assert nvidia_smi_report.cards("<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>") == ()
    assert nvidia_smi_report.cards("==============NVSMI LOG==============\nAttached GPUs : 0\n") == ()


def test_cards_of_several_kinds_keep_the_order_of_the_driver() -> None:
    second = TEXT[TEXT.index("GPU 00000000") :].replace("Made-up card", "Another").replace("C1:00.0", "C2:00.0")
    one, other = nvidia_smi_report.cards(TEXT + second)
    assert (one.index, other.index, other.name, other.bus) == (0, 1, "Another", "00000000:c2:00.0")
    assert replace(one, index=1, name="Another", bus="00000000:c2:00.0") == other


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]><nvidia_smi_log>&b;</nvidia_smi_log>'


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><nvidia_smi_log><gpu>&f;</gpu></nvidia_smi_log>',
        "<nvidia_smi_log>" + "<a>" * 100 + "</a>" * 100 + "</nvidia_smi_log>",
        "<nvidia_smi_log>" + "<a/>" * 500_000 + "</nvidia_smi_log>",
        "<nvidia_smi_log><gpu>",
        "<html></p>",
    ],
    ids=["entities", "file", "depth", "breadth", "cut off", "no XML"],
)
def test_hostile_or_broken_xml_is_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match="no report of nvidia-smi") as caught:
        nvidia_smi_report.cards(text, where="box.xml")
    assert caught.value.where == "box.xml"


def test_a_text_that_is_nested_without_end_is_cut_and_not_followed() -> None:
    deep = "GPU 00000000:C1:00.0\n" + "".join(f"{' ' * (place + 1)}x : 1\n" for place in range(3000))
    (card,) = nvidia_smi_report.cards(deep)
    assert card.memory_total_bytes is None
