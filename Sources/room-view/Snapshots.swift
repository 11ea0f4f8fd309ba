import Foundation
import MediaFiles
import RoomKit

extension RoomSession {
    /// Writes pictures as PNG files into the working directory, in the background, and says so.
    func save(_ pictures: [(frame: VideoFrame, track: RemoteVideoTrack)]) {
        guard !pictures.isEmpty else { return notify("There is no picture to write yet.") }
        let style = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)
        let time = Date.now.formatted(style)
        save { [self] in
            do {
                let paths = try pictures.map { picture in
                    let names = [picture.track.publisherIdentity, picture.track.name]
                    let name = names.map { TrackRecorder.fileName($0, limit: 90) }.joined(separator: "-")
                    return try Self.write(picture.frame, named: "\(name)-\(time)")
                }
                let others = paths.count > 1 ? " and \(paths.count - 1) more" : ""
                say("Wrote \(paths[0])\(others)")
            } catch {
                say("\(error)")
            }
        }
    }

    /// Writes a picture into a new file, whose name ends with the first number that is free.
    private static func write(_ frame: VideoFrame, named name: String) throws(MediaFileError) -> String {
        var number = 1
        while true {
            let path = "\(name)-\(number).png"
            do throws(MediaFileError) {
                try PNGWriter().write(frame, to: path)
                return path
            } catch {
                guard error.code == .fileExists else { throw error }
                number += 1
            }
        }
    }

    /// Says something in the window, and also where it can be read when the window is closed.
    private func say(_ sentence: String) {
        complain(sentence)
        notify(sentence)
    }
}
