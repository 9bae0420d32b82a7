// RUN: igniter-opt %s --emit=llvm --target=x86-64-v3 | filecheck %s --check-prefix=AVX2
// RUN: igniter-opt %s --emit=llvm --target=znver4 | filecheck %s --check-prefix=VNNI
// RUN: igniter-opt %s --emit=llvm --target=aarch64+dotprod | filecheck %s --check-prefix=ARM

// Dot products of a block whose sums are in 16 bits are emitted side by side: one pair of each, then an empty assembly
// that keeps LLVM from moving loads and sums of later pairs up. Factors are loaded for the pair that uses them first, and
// stores follow.

// AVX2-LABEL: define internal void @two.body(
// AVX2-COUNT-3: load <8 x i32>
// AVX2:       [[A:%.*]] = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:       [[B:%.*]] = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:       [[K:%.*]] = call { <16 x i16>, <16 x i16> } asm sideeffect "", "=v,=v,0,1"(<16 x i16> [[A]], <16 x i16> [[B]])
// AVX2:       [[C:%.*]] = extractvalue { <16 x i16>, <16 x i16> } [[K]], 0
// AVX2:       [[D:%.*]] = extractvalue { <16 x i16>, <16 x i16> } [[K]], 1
// AVX2-COUNT-3: load <8 x i32>
// AVX2:       [[P:%.*]] = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:       add <16 x i16> [[C]], [[P]]
// AVX2:       [[Q:%.*]] = call <16 x i16> @llvm.x86.avx2.pmadd.ub.sw(
// AVX2:       add <16 x i16> [[D]], [[Q]]
// AVX2-NOT:   asm
// AVX2-COUNT-2: call <8 x i32> @llvm.x86.avx2.pmadd.wd(
// AVX2:       store <8 x i32>
// AVX2:       store <8 x i32>
// AVX2:       ret void
// VNNI-NOT:   asm
// ARM-NOT:    asm
loop.func @two symbols [] (%u: memref<2x8xi32>, %s: memref<2x2x8xi32>, %y: memref<2x8xi32>) outputs 1 {
  %z = arith.constant dense<0> : vector<8xi32>
  %u0 = loop.load %u[0, v] lane v : vector<8xi32>
  %u1 = loop.load %u[1, v] lane v : vector<8xi32>
  %a0 = loop.load %s[0, 0, v] lane v : vector<8xi32>
  %a1 = loop.load %s[0, 1, v] lane v : vector<8xi32>
  %a = loop.dot_bytes %u0, %a0, %u1, %a1, %z most 15 : vector<8xi32>
  loop.store %a, %y[0, v] lane v
  %b0 = loop.load %s[1, 0, v] lane v : vector<8xi32>
  %b1 = loop.load %s[1, 1, v] lane v : vector<8xi32>
  %b = loop.dot_bytes %u0, %b0, %u1, %b1, %z most 15 : vector<8xi32>
  loop.store %b, %y[1, v] lane v
}

// A factor read from a buffer that the block writes stays in its place, and so do the dot products; one that depends on
// the other, too.

// AVX2-LABEL: define internal void @written.body(
// AVX2-NOT:   asm
// AVX2:       ret void
loop.func @written symbols [] (%u: memref<2x8xi32>, %s: memref<8xi32>, %y: memref<8xi32>) outputs 1 {
  %z = arith.constant dense<0> : vector<8xi32>
  %u0 = loop.load %u[0, v] lane v : vector<8xi32>
  %u1 = loop.load %u[1, v] lane v : vector<8xi32>
  %a0 = loop.load %s[v] lane v : vector<8xi32>
  %a = loop.dot_bytes %u0, %a0, %u1, %a0, %z most 15 : vector<8xi32>
  loop.store %a, %y[v] lane v
  %b0 = loop.load %y[v] lane v : vector<8xi32>
  %b = loop.dot_bytes %u0, %b0, %u1, %b0, %z most 15 : vector<8xi32>
  loop.store %b, %y[v] lane v
}

// AVX2-LABEL: define internal void @in_sequence.body(
// AVX2-NOT:   asm
// AVX2:       ret void
loop.func @in_sequence symbols [] (%u: memref<8xi32>, %s: memref<8xi32>, %y: memref<8xi32>) outputs 1 {
  %z = arith.constant dense<0> : vector<8xi32>
  %u0 = loop.load %u[v] lane v : vector<8xi32>
  %a0 = loop.load %s[v] lane v : vector<8xi32>
  %a = loop.dot_bytes %u0, %a0, %u0, %a0, %z most 15 : vector<8xi32>
  %b = loop.dot_bytes %u0, %a0, %u0, %a0, %a most 15 : vector<8xi32>
  loop.store %b, %y[v] lane v
}
