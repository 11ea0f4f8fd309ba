import CYUV
import Foundation
import MediaCore
import RoomKit
import VideoProcessing

/// A conversion, scaling or turn by our library, and one call of libyuv that does the same.
struct ConversionCase {
    let name: String
    /// Our way; the buffer goes back to its pool with the frame.
    let ours: () throws -> VideoFrame
    /// libyuv's call, from the same picture.
    let bare: (BareTarget) -> Void

    /// Whether both ways make the same picture.
    func isSame() throws -> Bool {
        let mine = try ours()
        let theirs = VideoBuffer(dimensions: mine.dimensions)
        bare(BareTarget(theirs))
        return mine.buffer.visibleBytes == theirs.visibleBytes
    }

    /// All cases from pictures of `size`; JPEG only with the path of a JPEG picture of that size.
    static func all(_ size: Dimensions, jpeg: String?) throws -> [ConversionCase] {
        var cases = try RawFormat.all.map { try captured($0.name, $0.sample(size), size, VideoFrameConverter()) }
        if let jpeg {
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: jpeg)))
            let layout = CapturedLayout(pixelFormat: .mjpeg, dimensions: size, bytesPerRow: 0)
            let sample = Sample(bytes: bytes, layout: layout, code: FOURCC_MJPG)
            cases.append(try captured("MJPG", sample, size, VideoFrameConverter()))
        }
        return try cases + transformed(size) + frames(size)
    }

    /// A conversion that changes the format alone, by the public converter.
    private static func captured(
        _ name: String,
        _ sample: Sample,
        _ size: Dimensions,
        _ converter: VideoFrameConverter
    ) -> ConversionCase {
        ConversionCase(name: name) {
            try VideoFrame(
                converting: sample.bytes.span.bytes,
                layout: sample.layout,
                timestamp: MonotonicInstant(nanoseconds: 0),
                with: converter
            )
        } bare: { target in
            target.convert(sample, keeping: size, of: size)
        }
    }

    /// Conversions that also crop or turn, as a camera's.
    private static func transformed(_ size: Dimensions) throws -> [ConversionCase] {
        let crop = Dimensions(width: size.width / 2 & ~1, height: size.height / 2 & ~1)
        let transforms: [(String, FrameTransform, RotationMode)] = [
            ("crop", FrameTransform(crop: crop), kRotate0),
            ("turn 90", FrameTransform(rotation: .clockwise90), kRotate90),
            ("turn 180", FrameTransform(rotation: .half), kRotate180),
            ("crop, turn 90", FrameTransform(crop: crop, rotation: .clockwise90), kRotate90),
        ]
        return try RawFormat.all.filter { ["YUYV", "NV12", "YU12", "RGB3"].contains($0.name) }.flatMap { format in
            let sample = format.sample(size)
            return try transforms.map { name, transform, mode in
                let converter = try FrameConverter(transform: transform)
                return ConversionCase(name: "\(format.name), \(name)") {
                    try converter.convert(
                        sample.bytes.span.bytes,
                        layout: sample.layout,
                        timestamp: MonotonicInstant(nanoseconds: 0)
                    )
                } bare: { target in
                    target.convert(sample, keeping: transform.crop ?? size, of: size, mode)
                }
            }
        }
    }

    /// What encoders and decoders do to whole frames.
    private static func frames(_ size: Dimensions) -> [ConversionCase] {
        let frame = VideoFrame(buffer: VideoBuffer(dimensions: size), timestamp: MonotonicInstant(nanoseconds: 0))
        frame.buffer.fillWithNoise()
        let source = BareTarget(frame.buffer)
        let shares = [("1/2", 2, 1), ("3/4", 4, 3), ("1/4", 4, 1)]
        let scalings = shares.map { name, whole, part in
            let target = Dimensions(width: size.width * part / whole & ~1, height: size.height * part / whole & ~1)
            let scaler = FrameScaler()
            return ConversionCase(name: "frame, scale \(name)") {
                scaler.scale(frame, to: target)
            } bare: {
                $0.scale(source)
            }
        }
        let turns: [(String, VideoRotation, RotationMode)] = [
            ("90", .clockwise90, kRotate90), ("180", .half, kRotate180), ("270", .clockwise270, kRotate270),
        ]
        let turnings = turns.map { name, rotation, mode in
            let scaler = FrameScaler()
            return ConversionCase(name: "frame, turn \(name)") {
                scaler.apply(FrameTransform(rotation: rotation), to: frame)
            } bare: {
                $0.turn(source, mode)
            }
        }
        let scaler = FrameScaler()
        let mirroring = ConversionCase(name: "frame, mirror") {
            scaler.apply(FrameTransform(isMirrored: true), to: frame)
        } bare: {
            $0.mirror(source)
        }
        return scalings + turnings + [mirroring]
    }
}

/// A picture as a camera delivers it.
struct Sample {
    var bytes: [UInt8]
    var layout: CapturedLayout
    /// libyuv's name of the format.
    var code: FourCC
}

/// An uncompressed format of cameras for which libyuv has a conversion of one call.
struct RawFormat {
    var name: String
    var format: PixelFormat
    var code: FourCC
    /// Bytes of a row of the first plane, for each pixel.
    var bytesPerPixel: Int
    /// Bytes of the whole picture, for each two pixels.
    var bytesPerPair: Int
    /// The coding that libyuv assumes, if it is not the usual one.
    var colour: CapturedColour?

    static let all = [
        RawFormat(name: "YUYV", format: .yuyv, code: FOURCC_YUY2, bytesPerPixel: 2, bytesPerPair: 4),
        RawFormat(name: "UYVY", format: .uyvy, code: FOURCC_UYVY, bytesPerPixel: 2, bytesPerPair: 4),
        RawFormat(name: "NV12", format: .nv12, code: FOURCC_NV12, bytesPerPixel: 1, bytesPerPair: 3),
        RawFormat(name: "NV21", format: .nv21, code: FOURCC_NV21, bytesPerPixel: 1, bytesPerPair: 3),
        RawFormat(name: "YU12", format: .i420, code: FOURCC_I420, bytesPerPixel: 1, bytesPerPair: 3),
        RawFormat(name: "YV12", format: .yv12, code: FOURCC_YV12, bytesPerPixel: 1, bytesPerPair: 3),
        RawFormat(
            name: "GREY",
            format: .grey,
            code: FOURCC_I400,
            bytesPerPixel: 1,
            bytesPerPair: 2,
            colour: CapturedColour(range: .limited)
        ),
        RawFormat(name: "GREY, full range", format: .grey, code: FOURCC_I400, bytesPerPixel: 1, bytesPerPair: 2),
        RawFormat(name: "RGB3", format: .rgb24, code: FOURCC_RAW, bytesPerPixel: 3, bytesPerPair: 6),
        RawFormat(name: "BGR3", format: .bgr24, code: FOURCC_24BG, bytesPerPixel: 3, bytesPerPair: 6),
        RawFormat(name: "AR24", format: .bgra32, code: FOURCC_ARGB, bytesPerPixel: 4, bytesPerPair: 8),
        RawFormat(name: "AB24", format: .rgba32, code: FOURCC_ABGR, bytesPerPixel: 4, bytesPerPair: 8),
        RawFormat(name: "BA24", format: .argb32, code: FOURCC_BGRA, bytesPerPixel: 4, bytesPerPair: 8),
    ]

    /// A picture of noise: the time of no conversion depends on the content.
    func sample(_ size: Dimensions) -> Sample {
        var noise = UInt64(1)
        let bytes = (0..<size.area * bytesPerPair / 2).map { _ -> UInt8 in
            noise = noise &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: noise >> 56)
        }
        let layout = CapturedLayout(
            pixelFormat: format,
            dimensions: size,
            bytesPerRow: size.width * bytesPerPixel,
            colour: colour
        )
        return Sample(bytes: bytes, layout: layout, code: code)
    }
}
