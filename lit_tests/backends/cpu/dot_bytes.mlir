// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 | filecheck %s --check-prefix=AVX2
// RUN: igniter-opt %s --emit=llvm --target=x86-64-v4 | filecheck %s --check-prefix=AVX512
// RUN: igniter-opt %s --emit=llvm --target=znver4 | filecheck %s --check-prefix=VNNI
// RUN: igniter-opt %s --emit=llvm --target=x86-64-v2 | filecheck %s --check-prefix=PLAIN
// RUN: igniter-opt %s --emit=llvm --target=aarch64+dotprod | filecheck %s --check-prefix=ARM

// Products of unsigned and signed bytes are one instruction where there is one, two where products of two bytes are
// added in 16 bits (unsigned bytes of at most 127 do not saturate them), and byte by byte elsewhere.

// AVX2:   call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:   call <8 x i32> @llvm.x86.avx2.pmadd.wd(
// AVX512: call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// VNNI:   call <8 x i32> @llvm.x86.avx512.vpdpbusd.256(
// PLAIN:  ashr <8 x i32>
// PLAIN:  mul <8 x i32>
// ARM:    ashr <8 x i32>
loop.func @eight symbols [] (%a: memref<8xi32>, %b: memref<8xi32>, %t: memref<8xi32>, %y: memref<8xi32>) outputs 1 {
  %x = loop.load %a[v] lane v : vector<8xi32>
  %w = loop.load %b[v] lane v : vector<8xi32>
  %s = loop.load %t[v] lane v : vector<8xi32>
  %d = loop.dot_bytes %x, %w, %s : vector<8xi32>
  loop.store %d, %y[v] lane v
}

// AVX2:   call <8 x i16> @llvm.x86.ssse3.pmadd.ub.sw.128(
// VNNI:   call <4 x i32> @llvm.x86.avx512.vpdpbusd.128(
// ARM:    call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(
loop.func @four symbols [] (%a: memref<4xi32>, %b: memref<4xi32>, %t: memref<4xi32>, %y: memref<4xi32>) outputs 1 {
  %x = loop.load %a[v] lane v : vector<4xi32>
  %w = loop.load %b[v] lane v : vector<4xi32>
  %s = loop.load %t[v] lane v : vector<4xi32>
  %d = loop.dot_bytes %x, %w, %s : vector<4xi32>
  loop.store %d, %y[v] lane v
}

// Numbers of 4 bits: the products of eight pairs are added in 16 bits, and widened once. A ninth pair needs a second
// sum.

// AVX2-LABEL: @nibbles
// AVX2-COUNT-8: call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:         call <8 x i32> @llvm.x86.avx2.pmadd.wd(
// AVX2-COUNT-1: call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:         call <8 x i32> @llvm.x86.avx2.pmadd.wd(
// AVX2-NOT:     call <16 x i16>
// AVX2:         ret void
// VNNI-LABEL: @nibbles
// VNNI-COUNT-9: call <8 x i32> @llvm.x86.avx512.vpdpbusd.256(
loop.func @nibbles symbols [] (%a: memref<8xi32>, %b: memref<8xi32>, %t: memref<8xi32>, %y: memref<8xi32>) outputs 1 {
  %x = loop.load %a[v] lane v : vector<8xi32>
  %w = loop.load %b[v] lane v : vector<8xi32>
  %s = loop.load %t[v] lane v : vector<8xi32>
  %d = loop.dot_bytes %x, %w, %x, %w, %x, %w, %x, %w, %x, %w, %x, %w, %x, %w, %x, %w, %x, %w, %s most 15 : vector<8xi32>
  loop.store %d, %y[v] lane v
}

// Any bytes: `vpdpbusd` takes them as they are, the other instructions in halves.

// AVX2-LABEL: @bytes
// AVX2-COUNT-2: call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2-NOT:     call <16 x i16>
// AVX2:         ret void
// VNNI-LABEL: @bytes
// VNNI-COUNT-1: call <8 x i32> @llvm.x86.avx512.vpdpbusd.256(
// VNNI-NOT:     vpdpbusd
// VNNI:         ret void
loop.func @bytes symbols [] (%a: memref<8xi32>, %b: memref<8xi32>, %t: memref<8xi32>, %y: memref<8xi32>) outputs 1 {
  %x = loop.load %a[v] lane v : vector<8xi32>
  %w = loop.load %b[v] lane v : vector<8xi32>
  %s = loop.load %t[v] lane v : vector<8xi32>
  %d = loop.dot_bytes %x, %w, %s most 255 : vector<8xi32>
  loop.store %d, %y[v] lane v
}

// ARM-LABEL: @four_bytes
// ARM-COUNT-2: call <4 x i32> @llvm.aarch64.neon.sdot.v4i32.v16i8(
// ARM-NOT:     sdot
// ARM:         ret void
loop.func @four_bytes symbols [] (%a: memref<4xi32>, %b: memref<4xi32>, %t: memref<4xi32>, %y: memref<4xi32>) outputs 1 {
  %x = loop.load %a[v] lane v : vector<4xi32>
  %w = loop.load %b[v] lane v : vector<4xi32>
  %s = loop.load %t[v] lane v : vector<4xi32>
  %d = loop.dot_bytes %x, %w, %s most 255 : vector<4xi32>
  loop.store %d, %y[v] lane v
}
