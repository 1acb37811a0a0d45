/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU table: one entry a GPU, sorted by name (ASCII letters without case; a test checks it). Columns: name, other
 * spellings, architecture, year, link, memory GB, memory a process sees in GiB (0 = not known), memory GB/s, dense FP16
 * TFLOP/s, FP8, INT8 TOP/s, FP4, link GB/s one way, power limit W, $/h on demand, $/h rental, mark, source.
 * Prices are cited figures of the named source, per GPU. */
#include "facts/gpu.h"

#include <math.h>

#define VERIFIED OPI_FACT_VERIFIED
#define RECALLED OPI_FACT_RECALLED
#define DATASHEET "vendor datasheet (recalled)"
#define AICONFIGURATOR(file) "aiconfigurator systems/" file ".yaml"
#define AWS(instance)                                                                                                \
    "; on demand: AWS " instance ", aws-samples/foundation-model-benchmarking-tool@39ce6b9 pricing.yml"
#define RENTAL "; 3-year rental: InferenceX-app@77ca49a constants.ts"

#define G(NAME, ALIASES, ARCH, YEAR, LINK, GB, SEEN, BW, FP16, FP8, INT8, FP4, LINK_GBS, TDP, DEMAND, RENT, MARK,    \
          FROM)                                                                                                      \
    {{.struct_size = sizeof(opi_gpu), .flags = MARK, .name = NAME, .arch = ARCH, .link = LINK, .source = FROM,       \
      .year = YEAR, .mem_gb = GB, .mem_bw_gbs = BW, .fp16_tflops = FP16, .fp8_tflops = FP8, .int8_tops = INT8,       \
      .fp4_tflops = FP4, .link_gbs = LINK_GBS, .tdp_w = TDP, .price_ondemand_usd_h = DEMAND,                         \
      .price_rental_usd_h = RENT}, ALIASES, SEEN}

const opi__gpu_entry opi__gpus[] = {
    /* clang-format off */
    G("A10-24GB", "A10", "Ampere", 2021, "pcie4", 24, 22, 600, 125, NAN, 250, NAN, 32, 150, NAN, NAN, RECALLED,
      "IBM LLM-Pilot gpu_features.csv (mem, bw, fp16); rest datasheet (recalled)"),
    G("A100-40GB-PCIe", "A100 PCIE 40GB", "Ampere", 2020, "pcie4", 40, 39.4, 1555, 312, NAN, 624, NAN, 32, 250, NAN,
      NAN, RECALLED, "IBM LLM-Pilot gpu_features.csv (memory, bw, tflops); tdp/pcie datasheet (recalled)"),
    G("A100-40GB-SXM", "A100 SXM4 40GB", "Ampere", 2020, "nvlink3", 40, 39.4, 1555, 312, NAN, 624, NAN, 300, 400, 4.711,
      NAN, RECALLED, DATASHEET "; bw/tdp agree with wattgpu gpu_features" AWS("p4d.24xlarge/8")),
    G("A100-80GB-SXM", "A100 SXM4 80GB", "Ampere", 2020, "nvlink3", 80, 79.15, 2039, 312, NAN, 624, NAN, 300, 400, 3.67,
      NAN, VERIFIED, AICONFIGURATOR("a100_sxm")
      "; on demand: tyler-griggs/melange-release@d46ab43 config/example.json"),
    G("ArcProB50-16GB", "Arc Pro B50", "Battlemage", 2025, "pcie5", 16, 0, 224, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
      RECALLED, DATASHEET),
    G("ArcProB60-24GB", "Arc Pro B60", "Battlemage", 2025, "pcie5", 24, 0, 456, 98.3, NAN, 197, NAN, 28.4, 200, NAN,
      NAN, VERIFIED, AICONFIGURATOR("b60")),
    G("ArcProB60Dual-48GB", "Arc Pro B60 Dual", "Battlemage", 2025, "pcie5", 48, 0, 912, 196.6, NAN, 394, NAN, NAN, 400,
      NAN, NAN, RECALLED, "two B60 on one card (doubled from aiconfigurator systems/b60.yaml)"),
    G("ArcProB70-32GB", "Arc Pro B70", "Battlemage", 2026, "pcie5", 32, 0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN,
      RECALLED, "name from MLPerf 6.0 only"),
    G("B200-180GB", "B200|B200 SXM|B200 192GB", "Blackwell", 2024, "nvlink5", 180, 178.3, 7700, 2250, 4500, 4500, 9000,
      900, 1000, NAN, 2.9, VERIFIED, AICONFIGURATOR("b200_sxm") RENTAL),
    G("B300-270GB", "B300|B300 SXM|B300 288GB", "Blackwell Ultra", 2025, "nvlink5", 270, 267.7, 7750, 2250, 4500, NAN,
      14000, 900, 1100, NAN, NAN, VERIFIED, "aiconfigurator systems/b300_sxm.yaml (memory as named by MLPerf)"),
    G("Gaudi2-96GB", "Gaudi2|HL-225", "Gaudi2", 2022, "roce", 96, 94.6, 2450, 432, 865, NAN, NAN, 300, 600, NAN, NAN,
      RECALLED, DATASHEET),
    G("GB200-186GB", "GB200|GB200 NVL72|GB200 192GB", "Blackwell", 2024, "nvlink5", 186, 184.3, 8000, 2500, 5000, 5000,
      10000, 900, 1200, NAN, 3.3, VERIFIED, AICONFIGURATOR("gb200") RENTAL),
    G("GB300-288GB", "GB300|GB300 NVL72", "Blackwell Ultra", 2025, "nvlink5", 288, 276.3, 8000, 2500, 5000, NAN, 15000,
      900, 1400, NAN, NAN, VERIFIED, AICONFIGURATOR("gb300")),
    G("GH200-144GB", "GH200 144GB HBM3e", "Hopper", 2024, "nvlink-c2c", 144, 0, 4900, 989, 1978, 1978, NAN, 450, 1000,
      NAN, NAN, RECALLED, DATASHEET),
    G("GH200-96GB", "GH200 480GB", "Hopper", 2023, "nvlink-c2c", 96, 94.5, 4000, 989, 1978, 1978, NAN, 450, 1000, NAN,
      NAN, RECALLED, DATASHEET "; module power limit configurable 450-1000 W"),
    G("H100-80GB-PCIe", "H100 PCIe", "Hopper", 2022, "pcie5", 80, 79.1, 2000, 756.5, 1513, 1513, NAN, 64, 350, NAN, NAN,
      VERIFIED, AICONFIGURATOR("h100_pcie")),
    G("H100-80GB-SXM", "H100|H100 SXM|H100 SXM5|H100 80GB HBM3|H100 80GB", "Hopper", 2022, "nvlink4", 80, 79.18, 3350,
      989, 1978, 1978, NAN, 450, 700, 14.1335, 1.3, VERIFIED, AICONFIGURATOR("h100_sxm") AWS("p5.48xlarge/8") RENTAL),
    G("H100-94GB-NVL", "H100 NVL", "Hopper", 2023, "nvlink4-bridge", 94, 93.1, 3940, 835, 1671, 1671, NAN, 300, 400,
      NAN, NAN, RECALLED, "wattgpu gpu_features (mem, bw, fp16, tdp); fp8/int8/link datasheet (recalled)"),
    G("H200-141GB", "H200|H200 SXM|H200 SXM5|H200 141GB SXM5", "Hopper", 2024, "nvlink4", 141, 139.8, 4800, 989, 1978,
      1978, NAN, 450, 700, 13.865, 1.6, VERIFIED, AICONFIGURATOR("h200_sxm") AWS("p5e.48xlarge/8") RENTAL),
    G("H200-141GB-NVL", "H200 NVL", "Hopper", 2024, "nvlink4-bridge", 141, 139.8, 4890, 835, 1671, 1671, NAN, 450, 600,
      NAN, NAN, RECALLED,
      "wattgpu gpu_features (mem, bw, fp16; its tdp of 700 is the SXM value); tdp/fp8/link datasheet (recalled)"),
    G("L4-24GB", "L4", "Ada", 2023, "pcie4", 24, 22, 300, 121, 242, 242, NAN, 32, 72, 1.222, NAN, VERIFIED,
      AICONFIGURATOR("l4") AWS("g6.2xlarge/1")),
    G("L40S-48GB", "L40S", "Ada", 2022, "pcie4", 48, 44.4, 864, 362, 733, 733, NAN, 32, 350, NAN, NAN, VERIFIED,
      AICONFIGURATOR("l40s")),
    G("Max1550-128GB", "Max 1550|Data Center GPU Max 1550", "Ponte Vecchio", 2022, "xelink", 128, 0, 3276, 832, NAN,
      1664, NAN, NAN, NAN, NAN, NAN, RECALLED, DATASHEET),
    G("MI250-128GB", "MI250", "CDNA2", 2021, "xgmi", 128, 127.9, 3277, 362.1, NAN, 362.1, NAN, 250, 560, NAN, NAN,
      RECALLED, DATASHEET "; one module = two GCDs"),
    G("MI300X-192GB", "MI300X", "CDNA3", 2023, "xgmi", 192, 191.98, 5300, 1307.4, 2614.9, 2614.9, NAN, 448, 750, 4.5,
      1.55, RECALLED, DATASHEET "; link = 7 x 64 GB/s"
      "; on demand: $36/h for 8, dstackai/benchmarks@06c957a h100sxm5_vs_mi300x (late 2024)" RENTAL),
    G("MI325X-256GB", "MI325X", "CDNA3", 2024, "xgmi", 256, 255.98, 6000, 1307.4, 2614.9, 2614.9, NAN, 448, 1000, NAN,
      1.8, RECALLED, DATASHEET RENTAL),
    G("MI350X-288GB", "MI350X", "CDNA4", 2025, "xgmi", 288, 287.98, 8000, 2300, 4600, 4600, 9200, 538, 1000, NAN, NAN,
      RECALLED, DATASHEET),
    G("MI355X-288GB", "MI355X", "CDNA4", 2025, "xgmi", 288, 287.98, 8000, 2500, 5000, 5000, 10000, 538, 1400, NAN, 2.1,
      RECALLED, DATASHEET RENTAL),
    G("MI355X-288GB-1000Wcap", "MI355X 1000W", "CDNA4", 2025, "xgmi", 288, 287.98, 8000, 2500, 5000, 5000, 10000, 538,
      1000, NAN, NAN, RECALLED, "as MI355X with the 1000 W cap named in MLPerf 6.0"),
    G("RTX-4090-24GB", "RTX 4090|4090", "Ada", 2022, "pcie4", 24, 23.5, 1010, 165, 330, 661, NAN, 32, 450, NAN, NAN,
      RECALLED, "wattgpu gpu_features (mem, bw, fp16, tdp); fp8/int8 datasheet (recalled)"),
    G("RTX-PRO-4500-32GB", "RTX PRO 4500", "Blackwell", 2025, "pcie5", 32, 0, 896, NAN, NAN, NAN, NAN, 64, 200, NAN,
      NAN, RECALLED, DATASHEET),
    G("RTX-PRO-6000-96GB-SE", "RTX PRO 6000|RTX PRO 6000 Blackwell Server Edition", "Blackwell", 2025, "pcie5", 96,
      94.97, 1792, 467.8, 935.6, 935.6, 1871, 64, 600, NAN, NAN, VERIFIED, AICONFIGURATOR("rtx_pro_6000_server")),
    G("SN40L-64GB", "SN40L", "RDU", 2023, "", 64, 0, NAN, 638, NAN, NAN, NAN, NAN, NAN, NAN, NAN, RECALLED, DATASHEET
      "; not a GPU"),
    G("T4-16GB", "T4", "Turing", 2018, "pcie3", 16, 14.6, 320, 65, NAN, 130, NAN, 16, 70, 0.7364, NAN, RECALLED,
      "wattgpu gpu_features; int8 datasheet (recalled)" AWS("g4dn.xlarge/1")),
    G("V100-16GB-PCIe", "V100 PCIE 16GB", "Volta", 2017, "pcie3", 16, 15.77, 900, 112, NAN, NAN, NAN, 16, 250, NAN, NAN,
      RECALLED, "IBM LLM-Pilot gpu_features.csv; tdp datasheet (recalled)"),
    G("V100-32GB-SXM", "V100 SXM2 32GB", "Volta", 2018, "nvlink2", 32, 31.74, 898, 125, NAN, NAN, NAN, 150, 300, NAN,
      NAN, RECALLED, "wattgpu gpu_features; link datasheet (recalled)"),
    /* clang-format on */
};
const size_t opi__gpu_entries = sizeof opi__gpus / sizeof opi__gpus[0];
