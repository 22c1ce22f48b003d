module @small_update_adam {
  func.func public @main(%a0: tensor<3x3x1x4xf32> {tf.aliasing_output = 0 : i32}, %a1: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %a2: tensor<4xf32> {tf.aliasing_output = 2 : i32}, %a3: tensor<4xf32> {tf.aliasing_output = 3 : i32}, %a4: tensor<16x3xf32> {tf.aliasing_output = 4 : i32}, %a5: tensor<3xf32> {tf.aliasing_output = 5 : i32}, %a6: tensor<4xf32> {tf.aliasing_output = 6 : i32}, %a7: tensor<4xf32> {tf.aliasing_output = 7 : i32}, %a8: tensor<3x3x1x4xf32> {tf.aliasing_output = 8 : i32}, %a9: tensor<4xf32> {tf.aliasing_output = 9 : i32}, %a10: tensor<4xf32> {tf.aliasing_output = 10 : i32}, %a11: tensor<4xf32> {tf.aliasing_output = 11 : i32}, %a12: tensor<16x3xf32> {tf.aliasing_output = 12 : i32}, %a13: tensor<3xf32> {tf.aliasing_output = 13 : i32}, %a14: tensor<4xf32> {tf.aliasing_output = 14 : i32}, %a15: tensor<4xf32> {tf.aliasing_output = 15 : i32}, %a16: tensor<3x3x1x4xf32> {tf.aliasing_output = 16 : i32}, %a17: tensor<4xf32> {tf.aliasing_output = 17 : i32}, %a18: tensor<4xf32> {tf.aliasing_output = 18 : i32}, %a19: tensor<4xf32> {tf.aliasing_output = 19 : i32}, %a20: tensor<16x3xf32> {tf.aliasing_output = 20 : i32}, %a21: tensor<3xf32> {tf.aliasing_output = 21 : i32}, %a22: tensor<4xf32> {tf.aliasing_output = 22 : i32}, %a23: tensor<4xf32> {tf.aliasing_output = 23 : i32}, %a24: tensor<3x3x1x4xf32>, %a25: tensor<4xf32>, %a26: tensor<4xf32>, %a27: tensor<4xf32>, %a28: tensor<16x3xf32>, %a29: tensor<3xf32>, %a30: tensor<4xf32>, %a31: tensor<4xf32>, %a32: tensor<11xf32>) -> (tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %3 = stablehlo.multiply %a24, %2 : tensor<3x3x1x4xf32>
    %4 = stablehlo.slice %a32 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %5 = stablehlo.reshape %4 : (tensor<1xf32>) -> tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %7 = stablehlo.multiply %6, %a0 : tensor<3x3x1x4xf32>
    %8 = stablehlo.add %3, %7 : tensor<3x3x1x4xf32>
    %9 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %10 = stablehlo.reshape %9 : (tensor<1xf32>) -> tensor<f32>
    %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %12 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %13 = stablehlo.reshape %12 : (tensor<1xf32>) -> tensor<f32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %15 = stablehlo.multiply %14, %a8 : tensor<3x3x1x4xf32>
    %16 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %17 = stablehlo.reshape %16 : (tensor<1xf32>) -> tensor<f32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %19 = stablehlo.multiply %18, %8 : tensor<3x3x1x4xf32>
    %20 = stablehlo.add %15, %19 : tensor<3x3x1x4xf32>
    %21 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %22 = stablehlo.reshape %21 : (tensor<1xf32>) -> tensor<f32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %24 = stablehlo.multiply %23, %a16 : tensor<3x3x1x4xf32>
    %25 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %26 = stablehlo.reshape %25 : (tensor<1xf32>) -> tensor<f32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %28 = stablehlo.multiply %8, %8 : tensor<3x3x1x4xf32>
    %29 = stablehlo.multiply %27, %28 : tensor<3x3x1x4xf32>
    %30 = stablehlo.add %24, %29 : tensor<3x3x1x4xf32>
    %31 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %32 = stablehlo.reshape %31 : (tensor<1xf32>) -> tensor<f32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %34 = stablehlo.multiply %a0, %33 : tensor<3x3x1x4xf32>
    %35 = stablehlo.sqrt %30 : tensor<3x3x1x4xf32>
    %36 = stablehlo.slice %a32 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %37 = stablehlo.reshape %36 : (tensor<1xf32>) -> tensor<f32>
    %38 = stablehlo.broadcast_in_dim %37, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %39 = stablehlo.divide %35, %38 : tensor<3x3x1x4xf32>
    %40 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %41 = stablehlo.reshape %40 : (tensor<1xf32>) -> tensor<f32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<3x3x1x4xf32>
    %43 = stablehlo.add %39, %42 : tensor<3x3x1x4xf32>
    %44 = stablehlo.divide %20, %43 : tensor<3x3x1x4xf32>
    %45 = stablehlo.multiply %11, %44 : tensor<3x3x1x4xf32>
    %46 = stablehlo.subtract %34, %45 : tensor<3x3x1x4xf32>
    %47 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %48 = stablehlo.reshape %47 : (tensor<1xf32>) -> tensor<f32>
    %49 = stablehlo.broadcast_in_dim %48, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %50 = stablehlo.multiply %a25, %49 : tensor<4xf32>
    %51 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %52 = stablehlo.reshape %51 : (tensor<1xf32>) -> tensor<f32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %54 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %55 = stablehlo.reshape %54 : (tensor<1xf32>) -> tensor<f32>
    %56 = stablehlo.broadcast_in_dim %55, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %57 = stablehlo.multiply %56, %a9 : tensor<4xf32>
    %58 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %59 = stablehlo.reshape %58 : (tensor<1xf32>) -> tensor<f32>
    %60 = stablehlo.broadcast_in_dim %59, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %61 = stablehlo.multiply %60, %50 : tensor<4xf32>
    %62 = stablehlo.add %57, %61 : tensor<4xf32>
    %63 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %64 = stablehlo.reshape %63 : (tensor<1xf32>) -> tensor<f32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %66 = stablehlo.multiply %65, %a17 : tensor<4xf32>
    %67 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %68 = stablehlo.reshape %67 : (tensor<1xf32>) -> tensor<f32>
    %69 = stablehlo.broadcast_in_dim %68, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %70 = stablehlo.multiply %50, %50 : tensor<4xf32>
    %71 = stablehlo.multiply %69, %70 : tensor<4xf32>
    %72 = stablehlo.add %66, %71 : tensor<4xf32>
    %73 = stablehlo.sqrt %72 : tensor<4xf32>
    %74 = stablehlo.slice %a32 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %75 = stablehlo.reshape %74 : (tensor<1xf32>) -> tensor<f32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %77 = stablehlo.divide %73, %76 : tensor<4xf32>
    %78 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %79 = stablehlo.reshape %78 : (tensor<1xf32>) -> tensor<f32>
    %80 = stablehlo.broadcast_in_dim %79, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %81 = stablehlo.add %77, %80 : tensor<4xf32>
    %82 = stablehlo.divide %62, %81 : tensor<4xf32>
    %83 = stablehlo.multiply %53, %82 : tensor<4xf32>
    %84 = stablehlo.subtract %a1, %83 : tensor<4xf32>
    %85 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %86 = stablehlo.reshape %85 : (tensor<1xf32>) -> tensor<f32>
    %87 = stablehlo.broadcast_in_dim %86, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %88 = stablehlo.multiply %a26, %87 : tensor<4xf32>
    %89 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %90 = stablehlo.reshape %89 : (tensor<1xf32>) -> tensor<f32>
    %91 = stablehlo.broadcast_in_dim %90, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %92 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %93 = stablehlo.reshape %92 : (tensor<1xf32>) -> tensor<f32>
    %94 = stablehlo.broadcast_in_dim %93, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %95 = stablehlo.multiply %94, %a10 : tensor<4xf32>
    %96 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %97 = stablehlo.reshape %96 : (tensor<1xf32>) -> tensor<f32>
    %98 = stablehlo.broadcast_in_dim %97, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %99 = stablehlo.multiply %98, %88 : tensor<4xf32>
    %100 = stablehlo.add %95, %99 : tensor<4xf32>
    %101 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %102 = stablehlo.reshape %101 : (tensor<1xf32>) -> tensor<f32>
    %103 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %104 = stablehlo.multiply %103, %a18 : tensor<4xf32>
    %105 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %106 = stablehlo.reshape %105 : (tensor<1xf32>) -> tensor<f32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %108 = stablehlo.multiply %88, %88 : tensor<4xf32>
    %109 = stablehlo.multiply %107, %108 : tensor<4xf32>
    %110 = stablehlo.add %104, %109 : tensor<4xf32>
    %111 = stablehlo.sqrt %110 : tensor<4xf32>
    %112 = stablehlo.slice %a32 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %113 = stablehlo.reshape %112 : (tensor<1xf32>) -> tensor<f32>
    %114 = stablehlo.broadcast_in_dim %113, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %115 = stablehlo.divide %111, %114 : tensor<4xf32>
    %116 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %117 = stablehlo.reshape %116 : (tensor<1xf32>) -> tensor<f32>
    %118 = stablehlo.broadcast_in_dim %117, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %119 = stablehlo.add %115, %118 : tensor<4xf32>
    %120 = stablehlo.divide %100, %119 : tensor<4xf32>
    %121 = stablehlo.multiply %91, %120 : tensor<4xf32>
    %122 = stablehlo.subtract %a2, %121 : tensor<4xf32>
    %123 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %124 = stablehlo.reshape %123 : (tensor<1xf32>) -> tensor<f32>
    %125 = stablehlo.broadcast_in_dim %124, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %126 = stablehlo.multiply %a27, %125 : tensor<4xf32>
    %127 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %128 = stablehlo.reshape %127 : (tensor<1xf32>) -> tensor<f32>
    %129 = stablehlo.broadcast_in_dim %128, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %130 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %131 = stablehlo.reshape %130 : (tensor<1xf32>) -> tensor<f32>
    %132 = stablehlo.broadcast_in_dim %131, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %133 = stablehlo.multiply %132, %a11 : tensor<4xf32>
    %134 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %135 = stablehlo.reshape %134 : (tensor<1xf32>) -> tensor<f32>
    %136 = stablehlo.broadcast_in_dim %135, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %137 = stablehlo.multiply %136, %126 : tensor<4xf32>
    %138 = stablehlo.add %133, %137 : tensor<4xf32>
    %139 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %140 = stablehlo.reshape %139 : (tensor<1xf32>) -> tensor<f32>
    %141 = stablehlo.broadcast_in_dim %140, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %142 = stablehlo.multiply %141, %a19 : tensor<4xf32>
    %143 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %144 = stablehlo.reshape %143 : (tensor<1xf32>) -> tensor<f32>
    %145 = stablehlo.broadcast_in_dim %144, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %146 = stablehlo.multiply %126, %126 : tensor<4xf32>
    %147 = stablehlo.multiply %145, %146 : tensor<4xf32>
    %148 = stablehlo.add %142, %147 : tensor<4xf32>
    %149 = stablehlo.sqrt %148 : tensor<4xf32>
    %150 = stablehlo.slice %a32 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %151 = stablehlo.reshape %150 : (tensor<1xf32>) -> tensor<f32>
    %152 = stablehlo.broadcast_in_dim %151, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %153 = stablehlo.divide %149, %152 : tensor<4xf32>
    %154 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %155 = stablehlo.reshape %154 : (tensor<1xf32>) -> tensor<f32>
    %156 = stablehlo.broadcast_in_dim %155, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %157 = stablehlo.add %153, %156 : tensor<4xf32>
    %158 = stablehlo.divide %138, %157 : tensor<4xf32>
    %159 = stablehlo.multiply %129, %158 : tensor<4xf32>
    %160 = stablehlo.subtract %a3, %159 : tensor<4xf32>
    %161 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %162 = stablehlo.reshape %161 : (tensor<1xf32>) -> tensor<f32>
    %163 = stablehlo.broadcast_in_dim %162, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %164 = stablehlo.multiply %a28, %163 : tensor<16x3xf32>
    %165 = stablehlo.slice %a32 [3:4] : (tensor<11xf32>) -> tensor<1xf32>
    %166 = stablehlo.reshape %165 : (tensor<1xf32>) -> tensor<f32>
    %167 = stablehlo.broadcast_in_dim %166, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %168 = stablehlo.multiply %167, %a4 : tensor<16x3xf32>
    %169 = stablehlo.add %164, %168 : tensor<16x3xf32>
    %170 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %171 = stablehlo.reshape %170 : (tensor<1xf32>) -> tensor<f32>
    %172 = stablehlo.broadcast_in_dim %171, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %173 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %174 = stablehlo.reshape %173 : (tensor<1xf32>) -> tensor<f32>
    %175 = stablehlo.broadcast_in_dim %174, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %176 = stablehlo.multiply %175, %a12 : tensor<16x3xf32>
    %177 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %178 = stablehlo.reshape %177 : (tensor<1xf32>) -> tensor<f32>
    %179 = stablehlo.broadcast_in_dim %178, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %180 = stablehlo.multiply %179, %169 : tensor<16x3xf32>
    %181 = stablehlo.add %176, %180 : tensor<16x3xf32>
    %182 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %183 = stablehlo.reshape %182 : (tensor<1xf32>) -> tensor<f32>
    %184 = stablehlo.broadcast_in_dim %183, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %185 = stablehlo.multiply %184, %a20 : tensor<16x3xf32>
    %186 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %187 = stablehlo.reshape %186 : (tensor<1xf32>) -> tensor<f32>
    %188 = stablehlo.broadcast_in_dim %187, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %189 = stablehlo.multiply %169, %169 : tensor<16x3xf32>
    %190 = stablehlo.multiply %188, %189 : tensor<16x3xf32>
    %191 = stablehlo.add %185, %190 : tensor<16x3xf32>
    %192 = stablehlo.slice %a32 [4:5] : (tensor<11xf32>) -> tensor<1xf32>
    %193 = stablehlo.reshape %192 : (tensor<1xf32>) -> tensor<f32>
    %194 = stablehlo.broadcast_in_dim %193, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %195 = stablehlo.multiply %a4, %194 : tensor<16x3xf32>
    %196 = stablehlo.sqrt %191 : tensor<16x3xf32>
    %197 = stablehlo.slice %a32 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %198 = stablehlo.reshape %197 : (tensor<1xf32>) -> tensor<f32>
    %199 = stablehlo.broadcast_in_dim %198, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %200 = stablehlo.divide %196, %199 : tensor<16x3xf32>
    %201 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %202 = stablehlo.reshape %201 : (tensor<1xf32>) -> tensor<f32>
    %203 = stablehlo.broadcast_in_dim %202, dims = [] : (tensor<f32>) -> tensor<16x3xf32>
    %204 = stablehlo.add %200, %203 : tensor<16x3xf32>
    %205 = stablehlo.divide %181, %204 : tensor<16x3xf32>
    %206 = stablehlo.multiply %172, %205 : tensor<16x3xf32>
    %207 = stablehlo.subtract %195, %206 : tensor<16x3xf32>
    %208 = stablehlo.slice %a32 [1:2] : (tensor<11xf32>) -> tensor<1xf32>
    %209 = stablehlo.reshape %208 : (tensor<1xf32>) -> tensor<f32>
    %210 = stablehlo.broadcast_in_dim %209, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %211 = stablehlo.multiply %a29, %210 : tensor<3xf32>
    %212 = stablehlo.slice %a32 [2:3] : (tensor<11xf32>) -> tensor<1xf32>
    %213 = stablehlo.reshape %212 : (tensor<1xf32>) -> tensor<f32>
    %214 = stablehlo.broadcast_in_dim %213, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %215 = stablehlo.slice %a32 [5:6] : (tensor<11xf32>) -> tensor<1xf32>
    %216 = stablehlo.reshape %215 : (tensor<1xf32>) -> tensor<f32>
    %217 = stablehlo.broadcast_in_dim %216, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %218 = stablehlo.multiply %217, %a13 : tensor<3xf32>
    %219 = stablehlo.slice %a32 [7:8] : (tensor<11xf32>) -> tensor<1xf32>
    %220 = stablehlo.reshape %219 : (tensor<1xf32>) -> tensor<f32>
    %221 = stablehlo.broadcast_in_dim %220, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %222 = stablehlo.multiply %221, %211 : tensor<3xf32>
    %223 = stablehlo.add %218, %222 : tensor<3xf32>
    %224 = stablehlo.slice %a32 [6:7] : (tensor<11xf32>) -> tensor<1xf32>
    %225 = stablehlo.reshape %224 : (tensor<1xf32>) -> tensor<f32>
    %226 = stablehlo.broadcast_in_dim %225, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %227 = stablehlo.multiply %226, %a21 : tensor<3xf32>
    %228 = stablehlo.slice %a32 [8:9] : (tensor<11xf32>) -> tensor<1xf32>
    %229 = stablehlo.reshape %228 : (tensor<1xf32>) -> tensor<f32>
    %230 = stablehlo.broadcast_in_dim %229, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %231 = stablehlo.multiply %211, %211 : tensor<3xf32>
    %232 = stablehlo.multiply %230, %231 : tensor<3xf32>
    %233 = stablehlo.add %227, %232 : tensor<3xf32>
    %234 = stablehlo.sqrt %233 : tensor<3xf32>
    %235 = stablehlo.slice %a32 [10:11] : (tensor<11xf32>) -> tensor<1xf32>
    %236 = stablehlo.reshape %235 : (tensor<1xf32>) -> tensor<f32>
    %237 = stablehlo.broadcast_in_dim %236, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %238 = stablehlo.divide %234, %237 : tensor<3xf32>
    %239 = stablehlo.slice %a32 [9:10] : (tensor<11xf32>) -> tensor<1xf32>
    %240 = stablehlo.reshape %239 : (tensor<1xf32>) -> tensor<f32>
    %241 = stablehlo.broadcast_in_dim %240, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %242 = stablehlo.add %238, %241 : tensor<3xf32>
    %243 = stablehlo.divide %223, %242 : tensor<3xf32>
    %244 = stablehlo.multiply %214, %243 : tensor<3xf32>
    %245 = stablehlo.subtract %a5, %244 : tensor<3xf32>
    %246 = stablehlo.constant dense<8.999999762e-01> : tensor<f32>
    %247 = stablehlo.broadcast_in_dim %246, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %248 = stablehlo.multiply %a6, %247 : tensor<4xf32>
    %249 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %250 = stablehlo.reshape %249 : (tensor<1xf32>) -> tensor<f32>
    %251 = stablehlo.broadcast_in_dim %250, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %252 = stablehlo.multiply %a30, %251 : tensor<4xf32>
    %253 = stablehlo.constant dense<1.000000238e-01> : tensor<f32>
    %254 = stablehlo.broadcast_in_dim %253, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %255 = stablehlo.multiply %252, %254 : tensor<4xf32>
    %256 = stablehlo.add %248, %255 : tensor<4xf32>
    %257 = stablehlo.broadcast_in_dim %246, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %258 = stablehlo.multiply %a7, %257 : tensor<4xf32>
    %259 = stablehlo.slice %a32 [0:1] : (tensor<11xf32>) -> tensor<1xf32>
    %260 = stablehlo.reshape %259 : (tensor<1xf32>) -> tensor<f32>
    %261 = stablehlo.broadcast_in_dim %260, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %262 = stablehlo.multiply %a31, %261 : tensor<4xf32>
    %263 = stablehlo.broadcast_in_dim %253, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %264 = stablehlo.multiply %262, %263 : tensor<4xf32>
    %265 = stablehlo.add %258, %264 : tensor<4xf32>
    return %46, %84, %122, %160, %207, %245, %256, %265, %20, %62, %100, %138, %181, %223, %a14, %a15, %30, %72, %110, %148, %191, %233, %a22, %a23 : tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x3x1x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<16x3xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
