import Foundation
import MediaCore
import MediaFiles
import TestTools
import Testing

/// What a program of the system printed.
struct ToolOutput {
    var status: Int32
    var output: String
    var complaints: String
}

/// Runs a program that is found through PATH; its absence fails the test.
///
/// By `posix_spawn`: Foundation's `Process` leaks, which AddressSanitizer would report among our leaks.
///
/// - Parameter command: Program and arguments, between them blanks.
/// - Returns: What it printed, once it has ended.
/// - Throws: When it cannot be run.
func run(_ command: String) async throws -> ToolOutput {
    let directory = try TemporaryDirectory()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, directory("out"), O_WRONLY | O_CREAT, 0o600)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, directory("err"), O_WRONLY | O_CREAT, 0o600)
    var arguments = command.split(separator: " ").map { strdup(String($0)) } + [nil]
    var environment = ProcessInfo.processInfo.environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
    defer { for text in arguments + environment { free(text) } }
    var process = pid_t()
    let failure = posix_spawnp(&process, try #require(arguments[0]), &actions, nil, &arguments, &environment)
    try #require(failure == 0, "cannot run \(command): \(failure)")
    return ToolOutput(
        status: await status(of: process),
        output: String(decoding: try bytes(of: directory("out")), as: UTF8.self),
        complaints: String(decoding: try bytes(of: directory("err")), as: UTF8.self)
    )
}

/// Waits for a process on a thread of its own, so that other tests can use those that tests run on.
private func status(of process: pid_t) async -> Int32 {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            var status: Int32 = 0
            while waitpid(process, &status, 0) < 0, errno == EINTR {}
            continuation.resume(returning: status)
        }
    }
}

/// The content of a file. (`Data(contentsOf:)` leaks for an empty one.)
func bytes(of path: String) throws -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    try #require(file >= 0, "\(path)")
    defer { close(file) }
    var (all, part) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
    while true {
        let count = read(file, &part, part.count)
        try #require(count >= 0)
        if count == 0 { return all }
        all += part[..<count]
    }
}

/// Compressed pictures made by ffmpeg.
struct Clip {
    struct Picture: Equatable {
        var time: Duration
        var isKeyframe: Bool
        var bytes: [UInt8]
    }

    var dimensions: Dimensions
    var pictures: [Picture]

    /// Encodes `source`, a filter of ffmpeg's, into VP8 with a keyframe every `interval` frames.
    init(_ source: String, keyframeInterval: Int) async throws {
        let directory = try TemporaryDirectory()
        let file = directory("clip.ivf")
        let ffmpeg = try await run(
            "ffmpeg -v error -f lavfi -i \(source) -c:v libvpx -g \(keyframeInterval)"
                + " -deadline realtime -auto-alt-ref 0 \(file)"
        )
        try #require(ffmpeg.status == 0, "\(ffmpeg.complaints)")
        self = try Clip(reading: IVFReader(path: file))
    }

    /// Reads what is left in `reader`.
    init(reading reader: any EncodedVideoReader) throws {
        dimensions = reader.dimensions
        pictures = []
        while let frame = try reader.nextFrame() {
            let bytes = reader.withFrameBytes { bytes in bytes.withUnsafeBytes { Array($0) } }
            #expect(bytes.count == frame.size.bytes)
            pictures.append(Picture(time: frame.time, isKeyframe: frame.isKeyframe, bytes: bytes))
        }
    }

    /// The pictures as an encoder gives them out, on a clock that did not start with them.
    var frames: [EncodedFrame] {
        pictures.enumerated().map { number, picture in
            let buffer = PacketBuffer(capacity: picture.bytes.count + 9)
            buffer.count = buffer.capacity
            buffer.withMutableBytes { target in
                for (index, byte) in picture.bytes.enumerated() {
                    target.storeBytes(of: byte, toByteOffset: 5 + index, as: UInt8.self)
                }
            }
            let info = EncodedFrameInfo(
                number: UInt32(number),
                timestamp: MonotonicInstant(nanoseconds: 987_654_321_123) + picture.time,
                isKeyframe: picture.isKeyframe
            )
            return EncodedFrame(info: info, buffer: buffer, range: 5..<5 + picture.bytes.count)
        }
    }

    /// Writes the pictures, and finishes the file unless told otherwise.
    func write(_ format: EncodedVideoFormat, to path: String, finishing: Bool = true) throws {
        let writer = try format.makeWriter(path: path, dimensions: dimensions, codec: .vp8)
        for frame in frames { try writer.write(frame) }
        if finishing { try writer.finish() }
    }

    /// The pictures with times rounded as a file's clock does it.
    func pictures(rounding unitsPerSecond: Int64) -> [Picture] {
        pictures.map { picture in
            var picture = picture
            let units = (picture.time.wholeNanoseconds * unitsPerSecond + 500_000_000) / 1_000_000_000
            picture.time = .nanoseconds(units * 1_000_000_000 / unitsPerSecond)
            return picture
        }
    }
}

/// A picture whose every pixel differs from its neighbours', the same for the same seed.
func noise(_ dimensions: Dimensions, seed: UInt8 = 0) -> VideoFrame {
    let buffer = VideoBuffer(dimensions: dimensions)
    buffer.withMutablePlanes { luma, chromaU, chromaV in
        for index in 0..<luma.count { luma[index] = UInt8(truncatingIfNeeded: index &* 31 &+ index >> 5) &+ seed }
        for index in 0..<chromaU.count { chromaU[index] = UInt8(truncatingIfNeeded: index &* 17) &+ seed }
        for index in 0..<chromaV.count { chromaV[index] = UInt8(truncatingIfNeeded: index &* 13 &+ 7) &+ seed }
    }
    return VideoFrame(buffer: buffer, timestamp: MonotonicInstant(nanoseconds: 0))
}

/// The pixels of a picture, without padding, plane after plane.
func pixels(of buffer: VideoBuffer) -> [UInt8] {
    let (size, chroma) = (buffer.dimensions, buffer.chromaDimensions)
    return buffer.withPlanes { luma, chromaU, chromaV in
        var all: [UInt8] = []
        for row in 0..<size.height {
            for column in 0..<size.width { all.append(luma[row * buffer.lumaStride + column]) }
        }
        for row in 0..<chroma.height {
            for column in 0..<chroma.width { all.append(chromaU[row * buffer.chromaStride + column]) }
        }
        for row in 0..<chroma.height {
            for column in 0..<chroma.width { all.append(chromaV[row * buffer.chromaStride + column]) }
        }
        return all
    }
}

/// The code of the error that `body` throws.
func code(of body: () throws -> Void) -> MediaFileError.Code? {
    do {
        try body()
        return nil
    } catch let error as MediaFileError {
        return error.code
    } catch {
        return nil
    }
}
