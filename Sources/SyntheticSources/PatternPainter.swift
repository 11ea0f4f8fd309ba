import Capture
import MediaCore
import Threading

/// Paints the test pattern; its still parts are copied from a picture that is made once for each size.
final class PatternPainter: FramePainter {
    let dimensions: Dimensions
    let frameRate: FrameRate

    private let pool = VideoBufferPool()
    private var backdrop: Backdrop

    init(dimensions: Dimensions, frameRate: FrameRate) {
        self.dimensions = dimensions
        self.frameRate = frameRate
        backdrop = Backdrop(dimensions: dimensions.codable)
    }

    func paint(_ assignment: FrameAssignment) -> VideoBuffer? {
        let dimensions = (assignment.dimensions ?? dimensions).codable
        if dimensions != backdrop.layout.dimensions { backdrop = Backdrop(dimensions: dimensions) }
        let buffer = pool.take(dimensions)
        backdrop.copy(into: buffer)
        paintMotion(of: Int(assignment.number), into: buffer)
        Barcode(number: assignment.number, timestamp: assignment.timestamp).paint(into: buffer)
        return buffer
    }

    private func paintMotion(of number: Int, into buffer: VideoBuffer) {
        let layout = backdrop.layout
        let lumaStride = buffer.lumaStride
        let chromaStride = buffer.chromaStride
        let square = squareArea(number)
        buffer.withMutablePlanes { luma, chromaU, chromaV in
            backdrop.paintGradient(shiftedBy: 2 * number, into: &luma, stride: lumaStride)
            luma.fill(square, stride: lumaStride, with: PatternPalette.square.luma)
            chromaU.fill(square.chroma, stride: chromaStride, with: PatternPalette.square.chromaU)
            chromaV.fill(square.chroma, stride: chromaStride, with: PatternPalette.square.chromaV)
            FrameCounter.paint(
                UInt32(truncatingIfNeeded: number),
                into: &luma,
                stride: lumaStride,
                width: layout.dimensions.width,
                rows: layout.gradientRows
            )
        }
    }

    /// The square in front of the bars, which bounces between their edges.
    private func squareArea(_ number: Int) -> PlaneArea {
        let layout = backdrop.layout
        let side = (min(layout.barRows.count, layout.dimensions.width) / 3) & ~1
        let left = bounce(number * 4, within: layout.dimensions.width - side)
        let top = layout.barRows.lowerBound + bounce(number * 2, within: layout.barRows.count - side)
        return PlaneArea(columns: left..<left + side, rows: top..<top + side)
    }

    /// A position that moves to and fro between 0 and `length`; it is even.
    private func bounce(_ distance: Int, within length: Int) -> Int {
        guard length > 0 else { return 0 }
        let phase = distance % (2 * length)
        return (phase < length ? phase : 2 * length - phase) & ~1
    }
}

/// The parts of the pattern that do not change from frame to frame.
private struct Backdrop {
    let layout: PatternLayout
    private let picture: VideoBuffer
    /// Two periods of the gradient, each as long as a row: it contains the gradient at any shift below a period.
    private let gradient: [UInt8]

    init(dimensions: Dimensions) {
        layout = PatternLayout(dimensions: dimensions)
        picture = VideoBuffer(dimensions: dimensions)
        let width = dimensions.width
        // The gradient runs from black to white and back, so that it repeats without an edge.
        gradient = (0..<2 * width).map { column in
            let position = column % width
            return UInt8(16 + 219 * min(position, width - position) * 2 / width)
        }
        let lumaStride = picture.lumaStride
        let chromaStride = picture.chromaStride
        picture.withMutablePlanes { luma, chromaU, chromaV in
            luma.update(repeating: PatternPalette.black.luma)
            chromaU.update(repeating: PatternPalette.black.chromaU)
            chromaV.update(repeating: PatternPalette.black.chromaV)
            for (index, colour) in PatternPalette.bars.enumerated() {
                let bar = PlaneArea(columns: layout.barColumns(index), rows: layout.barRows)
                luma.fill(bar, stride: lumaStride, with: colour.luma)
                chromaU.fill(bar.chroma, stride: chromaStride, with: colour.chromaU)
                chromaV.fill(bar.chroma, stride: chromaStride, with: colour.chromaV)
            }
        }
    }

    /// Copies the backdrop into `buffer`, which has the same size.
    func copy(into buffer: VideoBuffer) {
        picture.withPlanes { luma, chromaU, chromaV in
            buffer.withMutablePlanes { toLuma, toChromaU, toChromaV in
                toLuma.copy(luma, 0..<luma.count, to: 0)
                toChromaU.copy(chromaU, 0..<chromaU.count, to: 0)
                toChromaV.copy(chromaV, 0..<chromaV.count, to: 0)
            }
        }
    }

    func paintGradient(shiftedBy shift: Int, into luma: inout MutableSpan<UInt8>, stride: Int) {
        let width = layout.dimensions.width
        let start = shift % width
        for row in layout.gradientRows {
            luma.copy(gradient.span, start..<start + width, to: row * stride)
        }
    }
}
