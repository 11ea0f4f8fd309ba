import Foundation
import MediaCore
import MediaFiles
import TestTools
import Testing

@Suite("Files that were cut short", .timeLimit(.minutes(10)))
struct CrashTests {
    let directory: TemporaryDirectory
    let clip: Clip

    init() async throws {
        directory = try TemporaryDirectory()
        // Small, so that every byte can be tried.
        clip = try await Clip("color=gray:size=16x16:rate=5:duration=0.8,noise=alls=2:allf=t", keyframeInterval: 3)
    }

    /// Where in the file the frames begin and end.
    private func frames(in file: [UInt8]) throws -> [Range<Int>] {
        var found: [Range<Int>] = []
        for picture in clip.pictures {
            let size = picture.bytes.count
            let start = try #require(
                ((found.last?.upperBound ?? 0)...file.count - size).first {
                    Array(file[$0..<$0 + size]) == picture.bytes
                }
            )
            found.append(start..<start + size)
        }
        return found
    }

    @Test(
        "Our readers return all whole frames, then say that the file is cut",
        arguments: EncodedVideoFormat.allCases,
        [true, false]
    )
    func ownReaders(format: EncodedVideoFormat, isFinished: Bool) throws {
        let path = directory("clip")
        try clip.write(format, to: path, finishing: isFinished)
        let file = try bytes(of: path)
        let frames = try frames(in: file)
        for length in 0..<file.count {
            try store(file[..<length], at: path)
            let whole = frames.prefix { $0.upperBound <= length }.count
            var read: [[UInt8]] = []
            let failure = code {
                let reader = try EncodedVideoFormat.openReader(path: path)
                while try reader.nextFrame() != nil {
                    read.append(reader.withFrameBytes { bytes in bytes.withUnsafeBytes { Array($0) } })
                }
            }
            #expect(read == clip.pictures.prefix(whole).map(\.bytes), "\(length)")
            switch length {
            case ..<4: #expect(failure == .wrongFormat, "\(length)")
            case _ where frames.contains { $0.contains(length) }: #expect(failure == .truncated, "\(length)")
            case _ where frames.contains { $0.upperBound == length }: #expect(failure == nil, "\(length)")
            // Before and between the frames lie whole elements and cut ones.
            default: #expect(failure == nil || failure == .truncated, "\(length)")
            }
        }
    }

    @Test(
        "ffmpeg and vpxdec play a file that was cut at any byte",
        arguments: EncodedVideoFormat.allCases,
        [true, false]
    )
    func tools(format: EncodedVideoFormat, isFinished: Bool) async throws {
        let path = directory("clip.\(format.rawValue)")
        try clip.write(format, to: path, finishing: isFinished)
        let file = try bytes(of: path)
        let frames = try frames(in: file)
        let lengths = frames[0].upperBound..<file.count
        for length in lengths { try store(file[..<length], at: "\(path).\(length)") }
        // One call for all: a start takes ffmpeg thirty times as long as vpxdec.
        let inputs = lengths.map { "-i \(path).\($0)" }.joined(separator: " ")
        let outputs = lengths.enumerated().map { "-map \($0):v -c copy -f framecrc \(path).\($1).crc" }
        let ffmpeg = try await run("ffmpeg -v error \(inputs) \(outputs.joined(separator: " "))")
        #expect(ffmpeg.status == 0, "\(ffmpeg.complaints)")
        for length in lengths {
            let whole = frames.prefix { $0.upperBound <= length }.count
            let isAtEnd = frames.contains { $0.upperBound == length }
            let vpxdec = try await run("vpxdec --md5 --i420 --summary \(path).\(length)")
            // libwebm refuses any file that ends in the header of a cluster, or of a block of the first second.
            if format == .ivf || isAtEnd || frames.contains(where: { $0.contains(length) }) {
                #expect(vpxdec.complaints.contains("\(whole) decoded frames"), "\(length): \(vpxdec.complaints)")
            }
            let packets = String(decoding: try bytes(of: "\(path).\(length).crc"), as: UTF8.self)
                .split(separator: "\n").count { !$0.hasPrefix("#") }
            // ffmpeg counts the cut frame of an IVF file.
            #expect((whole...(format == .ivf ? whole + 1 : whole)).contains(packets), "\(length): \(packets)")
            guard isAtEnd else { continue }
            let ffprobe = try await run("ffprobe -v warning -count_packets -show_streams \(path).\(length)")
            #expect(ffprobe.complaints == "", "\(length)")
        }
    }
}
