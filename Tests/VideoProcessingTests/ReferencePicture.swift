import MediaCore

/// A plane as straightforward loops see it.
struct ReferencePlane: Equatable {
    var width: Int
    var height: Int
    var bytes: [UInt8]

    init(_ width: Int, _ height: Int, _ pixel: (Int, Int) -> UInt8) {
        self.width = width
        self.height = height
        bytes = (0..<width * height).map { pixel($0 % width, $0 / width) }
    }

    subscript(_ column: Int, _ row: Int) -> UInt8 { bytes[row * width + column] }

    func cropped(_ left: Int, _ top: Int, _ width: Int, _ height: Int) -> ReferencePlane {
        ReferencePlane(width, height) { self[left + $0, top + $1] }
    }

    func rotated(_ rotation: VideoRotation) -> ReferencePlane {
        switch rotation {
        case .none: self
        case .clockwise90: ReferencePlane(height, width) { self[$1, height - 1 - $0] }
        case .half: ReferencePlane(width, height) { self[width - 1 - $0, height - 1 - $1] }
        case .clockwise270: ReferencePlane(height, width) { self[width - 1 - $1, $0] }
        }
    }

    var mirrored: ReferencePlane { ReferencePlane(width, height) { self[width - 1 - $0, $1] } }

    /// Scaled down by whole factors, each pixel the rounded mean of those it covers.
    func scaled(to width: Int, _ height: Int) -> ReferencePlane {
        let (across, down) = (self.width / width, self.height / height)
        return ReferencePlane(width, height) { column, row in
            var sum = 0
            for y in 0..<down { for x in 0..<across { sum += Int(self[column * across + x, row * down + y]) } }
            return UInt8((sum + across * down / 2) / (across * down))
        }
    }

    func largestDifference(from other: ReferencePlane) -> Int {
        guard width == other.width, height == other.height else { return 256 }
        return zip(bytes, other.bytes).map { abs(Int($0) - Int($1)) }.max() ?? 0
    }
}

/// An I420 picture as straightforward loops see it.
struct ReferencePicture: Equatable {
    var luma: ReferencePlane
    var chromaU: ReferencePlane
    var chromaV: ReferencePlane

    /// Gradients and edges of limited range, different in every plane, so that nothing can be mistaken for another.
    init(_ width: Int, _ height: Int) {
        let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
        luma = ReferencePlane(width, height) { UInt8(16 + ($0 * 7 + $1 * 13 + ($0 * $1) % 5) % 220) }
        chromaU = ReferencePlane(halfWidth, halfHeight) { UInt8(16 + ($0 * 11 + $1 * 3) % 225) }
        chromaV = ReferencePlane(halfWidth, halfHeight) { UInt8(240 - ($0 * 5 + $1 * 17) % 225) }
    }

    init(_ buffer: VideoBuffer) {
        let chroma = buffer.chromaDimensions
        (luma, chromaU, chromaV) = buffer.withPlanes { y, u, v in
            (
                ReferencePlane(buffer.dimensions.width, buffer.dimensions.height) { y[$1 * buffer.lumaStride + $0] },
                ReferencePlane(chroma.width, chroma.height) { u[$1 * buffer.chromaStride + $0] },
                ReferencePlane(chroma.width, chroma.height) { v[$1 * buffer.chromaStride + $0] }
            )
        }
    }

    var dimensions: Dimensions { Dimensions(width: luma.width, height: luma.height) }

    func map(_ change: (ReferencePlane) -> ReferencePlane) -> ReferencePicture {
        var result = self
        result.luma = change(luma)
        result.chromaU = change(chromaU)
        result.chromaV = change(chromaV)
        return result
    }

    func cropped(_ left: Int, _ top: Int, _ width: Int, _ height: Int) -> ReferencePicture {
        var result = self
        result.luma = luma.cropped(left, top, width, height)
        result.chromaU = chromaU.cropped(left / 2, top / 2, (width + 1) / 2, (height + 1) / 2)
        result.chromaV = chromaV.cropped(left / 2, top / 2, (width + 1) / 2, (height + 1) / 2)
        return result
    }

    func scaled(to width: Int, _ height: Int) -> ReferencePicture {
        var result = self
        result.luma = luma.scaled(to: width, height)
        result.chromaU = chromaU.scaled(to: width / 2, height / 2)
        result.chromaV = chromaV.scaled(to: width / 2, height / 2)
        return result
    }

    func largestDifference(from other: ReferencePicture) -> Int {
        max(
            luma.largestDifference(from: other.luma),
            chromaU.largestDifference(from: other.chromaU),
            chromaV.largestDifference(from: other.chromaV)
        )
    }

    /// A buffer with this picture, and a pattern in the padding.
    var buffer: VideoBuffer {
        let buffer = VideoBuffer(dimensions: dimensions)
        buffer.withMutablePlanes { y, u, v in
            y.update(repeating: 0xEE)
            u.update(repeating: 0xEE)
            v.update(repeating: 0xEE)
            for row in 0..<luma.height {
                for column in 0..<luma.width { y[row * buffer.lumaStride + column] = luma[column, row] }
            }
            for row in 0..<chromaU.height {
                for column in 0..<chromaU.width {
                    u[row * buffer.chromaStride + column] = chromaU[column, row]
                    v[row * buffer.chromaStride + column] = chromaV[column, row]
                }
            }
        }
        return buffer
    }

    /// The bytes that a device would deliver, with rows `padding` bytes longer than need be, and the layout.
    ///
    /// `chroma` gives the value of a chroma plane for a column of it and a row of the picture, in formats of 4:2:2.
    func captured(
        as format: PixelFormat,
        padding: Int = 0,
        chroma: (ReferencePlane, Int, Int) -> UInt8 = { $0[$1, $2 / 2] }
    ) -> (bytes: [UInt8], layout: CapturedLayout) {
        let (width, height) = (luma.width, luma.height)
        var stride = width + padding
        var bytes: [UInt8] = []
        let addPlane = { (plane: ReferencePlane, stride: Int) in
            for row in 0..<plane.height {
                for column in 0..<stride { bytes.append(column < plane.width ? plane[column, row] : 0xEE) }
            }
        }
        switch format {
        case .yuyv, .yvyu, .uyvy:
            stride = (width + 1) / 2 * 4 + padding
            for row in 0..<height {
                for pair in 0..<(width + 1) / 2 {
                    let y = [luma[2 * pair, row], luma[min(2 * pair + 1, width - 1), row]]
                    let (u, v) = (chroma(chromaU, pair, row), chroma(chromaV, pair, row))
                    bytes +=
                        format == .yuyv
                        ? [y[0], u, y[1], v] : format == .yvyu ? [y[0], v, y[1], u] : [u, y[0], v, y[1]]
                }
                bytes += Array(repeating: 0xEE, count: padding)
            }
        case .nv12, .nv21:
            stride += stride % 2
            addPlane(luma, stride)
            let (first, second) = format == .nv12 ? (chromaU, chromaV) : (chromaV, chromaU)
            let pairs = ReferencePlane(2 * first.width, first.height) {
                $0 % 2 == 0 ? first[$0 / 2, $1] : second[$0 / 2, $1]
            }
            addPlane(pairs, stride)
        case .nv16:
            stride += stride % 2
            addPlane(luma, stride)
            let pairs = ReferencePlane(2 * chromaU.width, height) {
                chroma($0 % 2 == 0 ? chromaU : chromaV, $0 / 2, $1)
            }
            addPlane(pairs, stride)
        case .i422:
            stride += stride % 2
            addPlane(luma, stride)
            for plane in [chromaU, chromaV] {
                addPlane(ReferencePlane(plane.width, height) { chroma(plane, $0, $1) }, stride / 2)
            }
        case .i420, .yv12:
            stride += stride % 2
            addPlane(luma, stride)
            addPlane(format == .i420 ? chromaU : chromaV, stride / 2)
            addPlane(format == .i420 ? chromaV : chromaU, stride / 2)
        default:
            addPlane(luma, stride)
        }
        return (bytes, CapturedLayout(pixelFormat: format, dimensions: dimensions, bytesPerRow: stride))
    }
}
