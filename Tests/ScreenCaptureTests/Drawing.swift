import Foundation
import MediaCore
import RoomKit
import TestTools
import Threading

@testable import ScreenCapture

/// A picture as a program draws it, and the luma that a viewer should see, which owes nothing to the captured picture.
struct Drawing {
    /// The size.
    let dimensions: Dimensions
    /// Bytes B G R X, row by row without padding.
    private(set) var pixels: [UInt8]
    /// Y of BT.601 in limited range, row by row without padding.
    private(set) var luma: [UInt8]

    /// A picture of one colour (0xRRGGBB).
    init(_ dimensions: Dimensions, _ colour: UInt32) {
        self.dimensions = dimensions
        pixels = [UInt8](repeating: 0, count: 4 * dimensions.area)
        luma = [UInt8](repeating: 0, count: dimensions.area)
        fill(PixelArea(whole: dimensions), colour)
    }

    /// The picture of these bytes B G R X.
    init(_ dimensions: Dimensions, pixels: [UInt8]) {
        self.dimensions = dimensions
        self.pixels = pixels
        luma = (0..<dimensions.area).map { pixel in
            Self.luma(red: pixels[4 * pixel + 2], green: pixels[4 * pixel + 1], blue: pixels[4 * pixel])
        }
    }

    /// The equation of BT.601, in the limited range.
    private static func luma(red: UInt8, green: UInt8, blue: UInt8) -> UInt8 {
        let sum = 0.299 * Double(red) + 0.587 * Double(green) + 0.114 * Double(blue)
        return UInt8((16 + 219 * sum / 255).rounded())
    }

    /// Fills an area with a colour (0xRRGGBB).
    mutating func fill(_ area: PixelArea, _ colour: UInt32) {
        let (red, green, blue) = (UInt8(colour >> 16 & 0xFF), UInt8(colour >> 8 & 0xFF), UInt8(colour & 0xFF))
        let value = Self.luma(red: red, green: green, blue: blue)
        for row in area.row..<area.row + area.dimensions.height {
            for pixel in row * dimensions.width + area.column..<row * dimensions.width + area.column
                + area.dimensions.width
            {
                luma[pixel] = value
                (pixels[4 * pixel], pixels[4 * pixel + 1], pixels[4 * pixel + 2]) = (blue, green, red)
            }
        }
    }

    /// Draws another picture with its upper left pixel at a place.
    mutating func draw(_ other: Drawing, column: Int, row: Int) {
        for line in 0..<other.dimensions.height {
            let (from, to) = (line * other.dimensions.width, (row + line) * dimensions.width + column)
            let count = other.dimensions.width
            luma.replaceSubrange(to..<to + count, with: other.luma[from..<from + count])
            pixels.replaceSubrange(4 * to..<4 * (to + count), with: other.pixels[4 * from..<4 * (from + count)])
        }
    }

    /// A page: lines of small marks in black on white, as text has, and a coloured bar.
    static func page(_ size: Dimensions, seed: UInt64 = 7) -> Drawing {
        var random = SeededGenerator(seed: seed)
        var page = Drawing(size, 0xFFFFFF)
        for line in stride(from: 20, to: size.height - 20, by: 16) {
            var column = 20
            while column < size.width - 30 {
                let (width, height) = (Int.random(in: 1...2, using: &random), Int.random(in: 5...10, using: &random))
                page.fill(area(column, line, width, height), 0x141414)
                column += Int.random(in: 3...9, using: &random)
            }
        }
        page.fill(area(0, 0, size.width, 16), Self.bar)
        return page
    }

    /// The colour of a page's bar.
    static let bar: UInt32 = 0x2040D0

    /// The peak signal-to-noise ratio of a frame's luma against the drawing, in decibels; 0 for another size.
    func lumaPSNR(_ frame: VideoFrame) -> Double {
        guard frame.dimensions == dimensions else { return 0 }
        let sum = sum(of: frame, step: 1)
        return sum == 0 ? .infinity : 10 * log10(255.0 * 255 * Double(dimensions.area) / Double(sum))
    }

    /// The sum of the squared differences in every `step`-th pixel of every `step`-th row.
    func sum(of frame: VideoFrame, step: Int) -> Int {
        frame.buffer.withPlanes { seen, _, _ in
            seen.withUnsafeBufferPointer { seen in
                luma.withUnsafeBufferPointer { luma in
                    var sum = 0
                    var row = 0
                    while row < dimensions.height {
                        var column = 0
                        while column < dimensions.width {
                            let difference =
                                Int(luma[row * dimensions.width + column])
                                - Int(seen[row * frame.buffer.lumaStride + column])
                            sum += difference * difference
                            column += step
                        }
                        row += step
                    }
                    return sum
                }
            }
        }
    }
}

/// Keeps the pictures of a track that were decoded.
final class ShownPictures: VideoRenderer {
    private let frames = Monitor<[VideoFrame]>([])

    /// Shows a track from now on.
    init(of track: RemoteVideoTrack) { track.addRenderer(self) }

    func render(_ frame: VideoFrame) { frames.withLock { $0.append(frame) } }

    /// The pictures so far, by the time at which they came.
    var all: [VideoFrame] { frames.withLock { $0 } }

    /// Forgets the pictures so far.
    func forget() { frames.withLock { $0 = [] } }

    /// Waits until what was drawn at `drawn` has stood still for a second, and checks that it is sharp then: more than
    /// 35 dB.
    ///
    /// The second is one of the pictures' stamps, in which no gap counts as more than that of two pictures at 15 a
    /// second: while a busy machine takes no pictures, none can become sharper.
    @discardableResult
    func isSharpAfterASecond(
        _ drawing: Drawing,
        since drawn: MonotonicInstant,
        _ what: String
    ) async throws -> VideoFrame {
        let frame = try await eventual("\(what) stands still for a second") { () -> VideoFrame? in
            let rested = all.filter { $0.timestamp >= drawn }
            var rest = Duration.zero
            for (last, next) in zip(rested, rested.dropFirst()) {
                rest += min(next.timestamp.duration(since: last.timestamp), FrameRate(15).interval)
                if rest >= .milliseconds(999) { return next }
            }
            return nil
        }
        let ratio = drawing.lumaPSNR(frame)
        guard ratio > 35 else { throw TestFailure("after a second, \(what) has \(ratio) dB") }
        return frame
    }

    /// Waits until a picture shows `drawing` with more than 35 dB: nobody sees a difference any more.
    @discardableResult
    func showsSharply(_ drawing: Drawing, _ what: String) async throws -> VideoFrame {
        var (looked, latest) = (0, 0.0)
        return try await eventual("\(what) is sharp, at last \(latest) dB") {
            let frames = all.dropFirst(looked)
            looked += frames.count
            return frames.first { frame in
                latest = drawing.lumaPSNR(frame)
                return latest > 35
            }
        }
    }
}
